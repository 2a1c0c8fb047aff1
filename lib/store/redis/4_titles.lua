-- Titles as evidence: whose title is most like this one, and which titles are too frequent to tell.
--
-- A distinct title is one key: its text and its owners. Segments by pigeonhole lead to it, as
-- lib/index/titles.c explains; here the cuts are always even. The client works out what to look up (redis_titles.c).

local FEW_OWNERS = 8 -- so many owners are never too many
local OWNER_SIZE = 9 -- number and time
local SEEN_SIZE = 8 -- how often, and until when
local SEGMENT_PLACE, SEGMENT_SIZE = 7, 16 -- bucket and hash; hash, the title's place, time

-- ---- a title's key ----

local function title_place(c, title)
    local hash = redis.sha1hex(c.memory.seed .. 't' .. title)
    return pack('>I4I4', tonumber(sub(hash, 1, 8), 16), tonumber(sub(hash, 9, 16), 16))
end

-- What is known of a title; nil: nothing. Owners that have expired are left out.
local function get_title(c, place)
    c.titles = c.titles or {}
    if c.titles[place] ~= nil then
        return c.titles[place] or nil
    end
    local raw = call('GET', c.prefix .. 't' .. place)
    local entry = false
    if raw then
        local length = #raw >= 3 and unpack_from('>I3', raw)
        if not length or #raw < 3 + length or (#raw - 3 - length) % OWNER_SIZE ~= 0 then
            damaged('a title')
        end
        entry = { title = sub(raw, 4, 3 + length), owners = {} }
        for at = 4 + length, #raw, OWNER_SIZE do
            local number, time = unpack_from('>I5I4', raw, at)
            if time > c.now then
                entry.owners[#entry.owners + 1] = { number, time }
            end
        end
    end
    c.titles[place] = entry
    return entry or nil
end

local function change_title(c, place, entry)
    c.titles[place] = entry
    c.titles_changed = c.titles_changed or {}
    c.titles_changed[place] = true
end

-- ---- finding ----

-- Documents that are there, and copies that came by their title.
local function count_documents(c)
    local fields, count = call('HGETALL', c.meta_key), 0
    for i = 1, #fields, 2 do
        local expires = tonumber(string.match(fields[i], '^d(%d+)$'))
        if fields[i] == 'q' or (expires and (expires == 0 or expires > c.now)) then
            count = count + (tonumber(fields[i + 1]) or 0)
        end
    end
    return count
end

-- How often copies came by a title, and until when that counts at least. It stays when the owners go.
local function get_seen(c, place)
    c.seen_titles = c.seen_titles or {}
    local seen = c.seen_titles[place]
    if not seen then
        local raw = call('HGET', c.prefix .. 'q', place)
        if raw and #raw ~= SEEN_SIZE then
            damaged('how often a title came')
        end
        seen = { 0, 0 }
        if raw then
            seen[1], seen[2] = unpack_from('>I4I4', raw)
        end
        c.seen_titles[place] = seen
    end
    return seen
end

local function is_frequent(c, q, place, entry)
    local times = (entry and #entry.owners or 0) + get_seen(c, place)[1]
    if times <= FEW_OWNERS then
        return false
    end
    c.document_count = c.document_count or count_documents(c)
    return times > q.title_share * c.document_count
end

-- The places of titles that share a segment.
local function title_candidates(c, q)
    local keys, hashes, found, list = {}, {}, {}, {}
    for at = 1, #q.title_probes, SEGMENT_PLACE do
        keys[#keys + 1] = c.prefix .. 's' .. sub(q.title_probes, at, at + 2)
        hashes[#hashes + 1] = sub(q.title_probes, at + 3, at + 6)
    end
    local buckets = get_all(keys)
    for i, bucket in ipairs(buckets) do
        if bucket then
            check_bucket(keys[i], bucket, SEGMENT_SIZE)
        end
        local at = bucket and find_entry(bucket, SEGMENT_SIZE, hashes[i])
        while at do
            local place = sub(bucket, at + 4, at + 11)
            if not found[place] then
                found[place] = true
                list[#list + 1] = place
            end
            at = find_entry(bucket, SEGMENT_SIZE, hashes[i], at + SEGMENT_SIZE)
        end
    end
    return list
end

-- The first owner that is there.
local function first_owner(c, entry)
    for _, owner in ipairs(entry.owners) do
        local d = get_document(c, owner[1])
        if d and d.kind == DOCUMENT then
            return d
        end
    end
end

local function similar_title(c, q, f)
    if q.title == '' or c.memory.title_bits == 0 or is_frequent(c, q, q.title_place, get_title(c, q.title_place)) then
        return nil
    end
    local points, best = points_of(q.title), nil
    local candidates = title_candidates(c, q)
    f.candidates = f.candidates + #candidates
    for _, place in ipairs(candidates) do
        local entry = get_title(c, place)
        local other = entry and points_of(entry.title)
        local length = other and math.max(#points, #other)
        local allowed = other and allowed_edits(length, c.memory.title_least)
        local distance = allowed and edits(points, other, allowed)
        local similarity = distance and similarity_of(distance, length)
        if similarity and similarity >= f.title and not is_frequent(c, q, place, entry) then
            local d = first_owner(c, entry)
            if d and (similarity > f.title or d.number < best.number) then
                f.title, best = similarity, d
            end
        end
    end
    return best
end

-- ---- owners that come and go ----

local function segment_key(c, place)
    return c.prefix .. 's' .. sub(place, 1, 3)
end

-- A title with one owner more. Its segments are there for as long as the last owner is.
local function add_title(c, q, number, time)
    local entry = get_title(c, q.title_place) or { title = q.title, owners = {} }
    local latest = 0
    for _, owner in ipairs(entry.owners) do
        latest = math.max(latest, owner[2])
    end
    if entry.title ~= q.title then
        damaged('a title')
    end
    entry.owners[#entry.owners + 1] = { number, time }
    change_title(c, q.title_place, entry)
    for at = 1, time > latest and #q.title_homes or 0, SEGMENT_PLACE do
        local place = sub(q.title_homes, at, at + SEGMENT_PLACE - 1)
        local bytes = sub(place, 4) .. q.title_place
        remove_entry(c, segment_key(c, place), SEGMENT_SIZE, bytes)
        add_entry(c, segment_key(c, place), SEGMENT_SIZE, bytes .. pack('>I4', time), time)
    end
end

local function remove_title(c, d)
    local place = title_place(c, d.title)
    local entry = get_title(c, place)
    for i = entry and #entry.owners or 0, 1, -1 do
        if entry.owners[i][1] == d.number then
            table.remove(entry.owners, i)
        end
    end
    if entry then
        change_title(c, place, entry)
    end
    if entry and #entry.owners == 0 then
        for _, segment in ipairs(segment_places(c, d.title)) do
            remove_entry(c, segment_key(c, segment), SEGMENT_SIZE, sub(segment, 4) .. place)
        end
    end
end

-- Copies came by a title. What was counted long ago goes, by chance.
local SAMPLE, LONG_AGO = 4, 2592000

local function count_title(c, title, times)
    local place, key = title_place(c, title), c.prefix .. 'q'
    local entry, seen = get_title(c, place), get_seen(c, place)
    if times == 0 then
        return
    end
    seen[2] = 0 -- who had it before and would expire later may be gone
    for _, owner in ipairs(entry and entry.owners or {}) do
        seen[2] = math.max(seen[2], owner[2])
    end
    if not string.find(call('HGET', c.meta_key, 'q') or '0', '^%d+$') then
        damaged('the key ' .. c.meta_key)
    end
    seen[1] = math.min(seen[1] + times, NEVER)
    c.title_counted = { place = place, seen = seen, times = times, goes = call('PEXPIRETIME', key), old = {} }
    local some = call('HRANDFIELD', key, SAMPLE, 'WITHVALUES')
    for i = 1, #some, 2 do
        if #some[i + 1] == SEEN_SIZE and unpack_from('>I4', some[i + 1], 5) + LONG_AGO < c.now then
            c.title_counted.old[#c.title_counted.old + 1] = some[i]
        end
    end
end

-- ---- writing ----

local function write_counted(c, counted)
    local key, seen = c.prefix .. 'q', counted.seen
    call('HSET', key, counted.place, pack('>I4I4', seen[1], seen[2]))
    call('HINCRBY', c.meta_key, 'q', counted.times)
    if seen[2] == NEVER then
        call('PERSIST', key)
    elseif counted.goes ~= -1 and goes_at(c, seen[2]) > counted.goes then
        call('PEXPIREAT', key, goes_at_digits(c, seen[2]))
    end
    for _, place in ipairs(counted.old) do
        if place ~= counted.place then
            call('HDEL', key, place)
        end
    end
end

local function write_titles(c)
    for place in pairs(c.titles_changed or {}) do
        local entry, latest = c.titles[place], 0
        local parts = { pack('>I3', #entry.title), entry.title }
        for _, owner in ipairs(entry.owners) do
            parts[#parts + 1] = pack('>I5I4', owner[1], owner[2])
            latest = math.max(latest, owner[2])
        end
        if #entry.owners > 0 then
            set(c, c.prefix .. 't' .. place, concat(parts), latest)
        else
            call('DEL', c.prefix .. 't' .. place)
        end
    end
    if c.title_counted then
        write_counted(c, c.title_counted)
    end
end
