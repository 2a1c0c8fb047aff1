-- What is written: worked out first, all of it, and then written at once.

-- How long a server remembers which requests of a link it has seen, in milliseconds: longer than anyone waits for an
-- answer.
local SEEN_FOR = 120000
-- The removals that found something, of the last requests of a link.
local REMOVALS = 256

local LINK_SIZE = 9 -- number and time of a copy

-- ---- lists of copies ----

local function list_key(c, number)
    return c.prefix .. 'a' .. few_bytes(number)
end

local function get_list(c, key)
    c.lists = c.lists or {}
    if c.lists[key] == nil then
        c.lists[key] = call('GET', key)
    end
    local list = c.lists[key] or ''
    if #list % LINK_SIZE ~= 0 then
        damaged('the list ' .. string.format('%q', key))
    end
    return list
end

local function put_list(c, key, list)
    c.lists[key] = list
    c.lists_changed = c.lists_changed or {}
    c.lists_changed[key] = true
end

-- A list without a number and without what has expired.
local function sift_list(c, list, number)
    local kept = {}
    for at = 1, #list, LINK_SIZE do
        local one, expires = unpack_from('>I5I4', list, at)
        if one ~= number and expires > c.now then
            kept[#kept + 1] = sub(list, at, at + LINK_SIZE - 1)
        end
    end
    return concat(kept)
end

-- A list is mostly appended to, and gone through again when half of it has expired.
local function add_link(c, of, number, expires)
    local key, entry = list_key(c, of), pack('>I5I4', number, expires)
    if c.lists and c.lists[key] then
        return put_list(c, key, c.lists[key] .. entry)
    end
    local count = call('STRLEN', key) / LINK_SIZE
    local middle = call('GETRANGE', key, floor(count / 2) * LINK_SIZE + 5, floor(count / 2) * LINK_SIZE + 8)
    if count ~= floor(count) then
        damaged('the list ' .. string.format('%q', key))
    end
    if count > 1 and unpack_from('>I4', middle) <= c.now then
        return put_list(c, key, sift_list(c, get_list(c, key)) .. entry)
    end
    c.append = { key = key, entry = entry, until_then = call('PEXPIRETIME', key), expires = expires }
end

-- ---- documents that come and go ----

local function add_name(c, place, number, expires)
    add_entry(c, c.prefix .. 'n' .. sub(place, 1, -5), NAME_SIZE, sub(place, -4) .. pack('>I5I4', number, expires), expires)
end

local function remove_name(c, kind, name, number)
    local bucket, hash = name_place(c, kind, name)
    remove_entry(c, c.prefix .. 'n' .. bucket, NAME_SIZE, hash .. pack('>I5', number))
end

local function remove_document(c, d)
    c.deleted = c.deleted or {}
    c.deleted[#c.deleted + 1] = document_key(c, d.number)
    if d.id ~= '' then
        remove_name(c, 'n', d.id, d.number)
    end
    if d.canonical ~= '' and d.canonical ~= d.id and not has_flag(d, NO_URL) then
        remove_name(c, 'n', d.canonical, d.number)
    end
    if has_flag(d, HAS_TEXT) then
        c.deleted[#c.deleted + 1] = c.prefix .. 'x' .. few_bytes(d.number)
        call('STRLEN', c.deleted[#c.deleted])
    end
    if d.kind == COPY then
        local key = list_key(c, d.of)
        local list = get_list(c, key)
        if #list > 0 then
            put_list(c, key, sift_list(c, list, d.number))
        end
    else
        c.deleted[#c.deleted + 1] = list_key(c, d.number)
        call('STRLEN', c.deleted[#c.deleted])
        if d.digest then
            remove_name(c, 'g', d.digest, d.number)
        end
        if has_flag(d, CONTENT) then
            for _, key in ipairs(band_keys(c, d.fingerprint)) do
                remove_entry(c, key, c.band_size, d.fingerprint .. pack('>I5', d.number))
            end
        end
    end
    count_live(c, d.kind, d.added, d.expires, -1)
end

-- Whether nothing is left: no document that has not expired.
local function is_empty(c)
    local fields, live = call('HGETALL', c.meta_key), {}
    for i = 1, #fields, 2 do
        live[fields[i]] = tonumber(fields[i + 1])
    end
    for field, count in pairs(c.live) do
        live[field] = count
    end
    for field, count in pairs(live) do
        local expires = tonumber(string.match(field, '^[dc](%d+)$'))
        if expires and count and count > 0 and (expires == 0 or expires > c.now) then
            return false
        end
    end
    return true
end

-- Fields of the meta key that count what has expired.
local function expired_fields(c)
    local expired = {}
    for _, field in ipairs(call('HKEYS', c.meta_key)) do
        local expires = tonumber(string.match(field, '^[dc](%d+)$'))
        if expires and expires > 0 and expires <= c.now then
            expired[#expired + 1] = field
        end
    end
    return expired
end

-- ---- writing ----

local function set(c, key, value, expires)
    if expires == NEVER then
        call('SET', key, value)
    else
        call('SET', key, value, 'PXAT', goes_at(c, expires))
    end
end

local function write_lists(c)
    for key in pairs(c.lists_changed or {}) do
        local list, latest = c.lists[key], 0
        for at = 1, #list, LINK_SIZE do
            latest = math.max(latest, (unpack_from('>I4', list, at + 5)))
        end
        if #list == 0 then
            call('DEL', key)
        else
            set(c, key, list, latest)
        end
    end
    local a = c.append
    if a then
        call('APPEND', a.key, a.entry)
        if a.expires == NEVER then
            call('PERSIST', a.key)
        elseif a.until_then ~= -1 and goes_at(c, a.expires) > a.until_then then
            call('PEXPIREAT', a.key, goes_at(c, a.expires))
        end
    end
end

-- The meta key: numbers, counts, and that it lives as long as the last document.
local function write_meta(c, expires)
    local fields = { 'n', string.format('%.0f', c.last) }
    local function add(field, value)
        fields[#fields + 1] = field
        fields[#fields + 1] = string.format('%.0f', value)
    end
    for field in pairs(c.live_changed or {}) do
        if c.live[field] > 0 then
            add(field, c.live[field])
        else
            call('HDEL', c.meta_key, field)
        end
    end
    if c.totals_changed then
        add('u', c.total[1])
        add('w', c.total[2])
        add('t', c.total[3])
        add('z', c.counted)
    end
    if expires == NEVER and c.latest ~= '0' then
        add('x', 0)
        call('PERSIST', c.meta_key)
    elseif expires and expires ~= NEVER and c.latest ~= '0' then
        local goes = goes_at(c, expires)
        if c.latest == '' or goes > tonumber(c.latest) then
            add('x', goes)
            call('PEXPIREAT', c.meta_key, goes)
        end
    end
    call('HSET', c.meta_key, unpack(fields))
end

-- Notes that a request was carried out.
local function write_seen(c, request, removal)
    local removals = sub((removal and request or '') .. sub(c.seen or '', 9), 1, 8 * REMOVALS)
    local goes = c.clock + SEEN_FOR
    if c.latest ~= '0' and c.latest ~= '' and tonumber(c.latest) < goes and tonumber(c.latest) > c.clock then
        goes = tonumber(c.latest)
    end
    call('SET', c.request_key, request .. removals, 'PXAT', goes)
end

local function write_all(c, expires)
    for key in pairs(c.changed) do
        local bucket = c.buckets[key]
        if bucket then
            local _, latest = unpack_from('>I4I4', bucket)
            set(c, key, bucket, latest)
        else
            call('DEL', key)
        end
    end
    write_lists(c)
    if c.deleted then
        call('DEL', unpack(c.deleted))
    end
    for _, one in ipairs(c.sets or {}) do
        set(c, one[1], one[2], one[3])
    end
    if c.counts then
        call('SETRANGE', c.counts[1], COUNTS_AT - 1, c.counts[2])
    end
    if c.expired and #c.expired > 0 then
        call('HDEL', c.meta_key, unpack(c.expired))
    end
    if c.empty then
        call('DEL', c.meta_key)
    else
        write_meta(c, expires)
    end
end
