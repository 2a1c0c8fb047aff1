-- Removing, reading, and the beginning: the functions by name.

-- ---- removing ----

local function remove(keys, argv)
    local c = begin(keys[1], tonumber(argv[5]))
    local q = { again = argv[1] == '1', link = 'r' .. argv[2], request = argv[3] }
    local there = read_meta(c, argv[4], q.link)
    c.seen = c.seen or call('GET', c.prefix .. q.link)
    if is_late(q, c.seen) then
        return answer(OK, nil, 0, 0)
    elseif was_seen(q, c.seen) then
        for at = 14, #c.seen, 8 do
            if sub(c.seen, at, at + 7) == q.request then
                return answer(OK, nil, FOUND, 0)
            end
        end
        -- It found nothing, or was refused: to carry it out now is right, as nobody was told of the first time.
    end
    local d = there and find_name(c, argv[6], has_id, argv[7])
    if not d then
        if q.again then
            note_seen(c, q, there)
        end
        return answer(OK, nil, 0, 0)
    end
    remove_document(c, d)
    end_meta(c, q)
    write_all(c, q, true)
    return answer(OK, nil, FOUND + (c.empty and EMPTIED or 0), d.number)
end

-- ---- reading ----

-- A document with all that belongs to it: number and distance, its bytes, its text, its original, its copies.
local function give(c, d, distance)
    local given = { pack('>I5B', d.number, distance or 255), d.raw, '', '' }
    if has_flag(d, HAS_TEXT) then
        given[3] = call('GET', c.prefix .. 'x' .. few_bytes(d.number)) or ''
    end
    if d.kind == COPY then
        local original = get_document(c, d.of)
        given[4] = original and original.raw or ''
        return given
    end
    local list = call('GET', list_key(c, d.number)) or ''
    if #list % LINK_SIZE ~= 0 then
        damaged('the list of document ' .. d.number)
    end
    for at = 1, #list, LINK_SIZE do
        local copy = get_document(c, (unpack_from('>I5', list, at)))
        if copy then
            given[#given + 1] = copy.raw
        end
    end
    return given
end

-- A context to read in; nil: nothing is there.
local function open_reading(keys, argv)
    local c = begin(keys[1], tonumber(argv[2]))
    return read_meta(c, argv[1]) and c
end

local function get(keys, argv)
    local c = open_reading(keys, argv)
    local d = c and (find_name(c, argv[3], has_id, argv[4]) or find_name(c, argv[5], has_url, argv[6]))
    return d and { give(c, d) } or {}
end

-- Numbers of 5 bytes.
local function get_numbers(keys, argv)
    local c, given = open_reading(keys, argv), {}
    for at = 1, c and #argv[3] or 0, 5 do
        local d = get_document(c, (unpack_from('>I5', argv[3], at)))
        if d then
            given[#given + 1] = give(c, d)
        end
    end
    return given
end

local function get_near(keys, argv)
    local c, given, seen = open_reading(keys, argv), {}, {}
    if not c then
        return given
    end
    local found, limit = {}, tonumber(argv[5])
    add_keys(found, c.prefix .. 'b', argv[6], c.memory.band_bytes + 1)
    for i, bucket in ipairs(get_all(found)) do
        take_bucket(c, found[i], c.band_size, bucket)
    end
    c.near, c.band_keys, c.first_band = tonumber(argv[4]), found, 1
    for _, hit in ipairs((find_near(c, argv[3]))) do
        local d = #given < limit and not seen[hit[2]] and get_document(c, hit[2])
        seen[hit[2]] = true
        if d and d.kind == DOCUMENT then
            given[#given + 1] = give(c, d, hit[1])
        end
    end
    return given
end

-- A call goes through so many numbers at most, and a part of them at a time.
local STRETCH, PART = 16384, 1024

-- What a function gives; nil, and one more in `lost`, when it met what doppel did not write.
local function attempt(lost, run, ...)
    local done, given = pcall(run, ...)
    if done then
        return given
    end
    local why = type(given) == 'table' and given.err or tostring(given)
    if sub(why, 1, 8) ~= 'DAMAGED ' then
        error({ err = why })
    end
    lost.count = lost.count + 1
end

-- Calls `take` with each document from a number on, until it says that it has enough; gives the number to go on with,
-- 0: that was the last.
local function walk(c, from, lost, take)
    local last = math.min(c.last, from + STRETCH - 1)
    while from <= last do
        local keys = {}
        for number = from, math.min(last, from + PART - 1) do
            keys[#keys + 1] = document_key(c, number)
        end
        for i, raw in ipairs(call('MGET', unpack(keys))) do
            local d = raw and attempt(lost, read_document, from + i - 1, raw, c.width)
            if d and (d.expires == 0 or d.expires > c.now) and take(d) then
                return from + i > c.last and 0 or from + i
            end
        end
        from = from + #keys
    end
    return from > c.last and 0 or from
end

-- Some documents from a number on, with the number to go on with and how many cannot be read.
local function each(keys, argv)
    local c, given, lost = open_reading(keys, argv), { '0 0' }, { count = 0 }
    if not c then
        return given
    end
    local most = tonumber(argv[4])
    local next_number = walk(c, tonumber(argv[3]), lost, function(d)
        given[#given + 1] = attempt(lost, give, c, d)
        return #given > most
    end)
    given[1] = string.format('%.0f %d', next_number, lost.count)
    return given
end

-- Originals within any distance: numbers and distances, and the number to go on with.
local function scan(keys, argv)
    local c, hits, most = open_reading(keys, argv), {}, tonumber(argv[5])
    if not c then
        return { '0', '' }
    end
    local bytes = { byte(argv[4], 1, c.width) }
    local next_number = walk(c, tonumber(argv[3]), { count = 0 }, function(d)
        local distance = d.kind == DOCUMENT and has_flag(d, CONTENT) and distance_at(bytes, d.fingerprint, 1, most)
        if distance and distance <= most then
            hits[#hits + 1] = pack('>I5B', d.number, distance)
        end
    end)
    return { string.format('%.0f', next_number), concat(hits) }
end

-- ---- the beginning ----

-- A memory that nothing was added to is kept so long, in milliseconds: 30 days.
local UNUSED_FOR = 2592000000

-- Makes the meta key of these fields, unless there is one; gives what it has.
local function make(keys, argv)
    start()
    if call('EXISTS', keys[1]) == 0 then
        call('HSET', keys[1], 'n', '0', 'x', '', unpack(argv))
        call('PEXPIRE', keys[1], UNUSED_FOR)
    end
    return call('HMGET', keys[1], 'v', 's', 'e', 'k', 'p', 'g', 'x')
end

-- What removes may do so when there is no memory left.
local function register(name, callback, flags)
    redis.register_function({ function_name = NAME .. name, callback = callback, flags = flags })
end
register('_check', check, { 'no-writes' })
register('_add', add, {})
register('_remove', remove, { 'allow-oom' })
register('_get', get, { 'no-writes' })
register('_numbers', get_numbers, { 'no-writes' })
register('_near', get_near, { 'no-writes' })
register('_each', each, { 'no-writes' })
register('_scan', scan, { 'no-writes' })
register('_make', make, {})
