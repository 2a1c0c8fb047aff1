-- What is written: worked out first, all of it, and then written at once.

-- How long a server remembers which requests of a link it has seen, in seconds: longer than anyone waits for an answer.
local SEEN_FOR = 3600
-- The same in milliseconds, of a link that removed the last document, and with it the meta key.
local LAST_FOR = 120000
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
        damaged('the list ' .. key)
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
        damaged('the list ' .. key)
    end
    if count > 1 and unpack_from('>I4', middle) <= c.now then
        return put_list(c, key, sift_list(c, get_list(c, key)) .. entry)
    end
    c.append = { key = key, entry = entry, until_then = call('PEXPIRETIME', key), expires = expires }
end

-- ---- documents that come and go ----

local function add_name(c, place, number, expires)
    local entry = sub(place, -4) .. pack('>I5I4', number, expires)
    add_entry(c, c.prefix .. 'n' .. sub(place, 1, -5), NAME_SIZE, entry, expires)
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
        if d.title ~= '' and c.memory.title_bits > 0 then
            remove_title(c, d)
        end
    end
    count_live(c, d.kind, d.added, d.expires, -1)
end

-- Whether a field of the meta key is that of a link.
local function is_link(field)
    return sub(field, 1, 1) == 'r' and #field == 9
end

-- The times of what is there, after this call, in the fields of the meta key: the latest, 0 where one never expires; nil:
-- nothing is there. And the keys of what was answered to all links.
local function latest_live(c)
    local fields, live, links, latest = call('HGETALL', c.meta_key), {}, {}, nil
    for i = 1, #fields, 2 do
        live[fields[i]] = tonumber(fields[i + 1])
        if is_link(fields[i]) then
            links[#links + 1] = c.prefix .. 'o' .. sub(fields[i], 2)
        end
    end
    for field, count in pairs(c.live) do
        live[field] = count
    end
    for field, count in pairs(live) do
        local expires = tonumber(string.match(field, '^[dc](%d+)$'))
        if expires and count and count > 0 and (expires == 0 or expires > c.now) then
            latest = (expires == 0 or latest == 0) and 0 or math.max(latest or 0, expires)
        end
    end
    return latest, links
end

-- What a removal means for the meta key: it goes when nothing is left, and sooner when the last to expire has gone. What
-- counts titles goes with it at the latest.
local function end_meta(c, q)
    local last_of_field = false
    for field in pairs(c.live_changed or {}) do
        last_of_field = last_of_field or c.live[field] <= 0
    end
    if not last_of_field then
        return
    end
    local latest, links = latest_live(c)
    local before = tonumber(c.latest)
    c.empty = not latest
    if c.empty then
        for _, key in ipairs(links) do
            c.deleted[#c.deleted + 1] = key
            call('STRLEN', key)
        end
        call('EXISTS', c.prefix .. q.link, c.prefix .. 'q')
    elseif latest > 0 and before and (before == 0 or goes_at(c, latest) < before) then
        c.ends = latest
        call('HLEN', c.prefix .. 'q')
    end
end

-- Fields of the meta key that count what has expired, and those of links that have long been silent.
local function expired_fields(c)
    local expired, fields = {}, call('HGETALL', c.meta_key)
    for i = 1, #fields, 2 do
        local field, value = fields[i], fields[i + 1]
        local expires = tonumber(string.match(field, '^[dc](%d+)$'))
        local silent = is_link(field) and (#value < 13 or unpack_from('>I5', value, 9) + SEEN_FOR < c.server_now)
        if silent or (expires and expires > 0 and expires <= c.now) then
            expired[#expired + 1] = field
        end
    end
    return expired
end

-- ---- writing ----

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
            call('PEXPIREAT', a.key, goes_at_digits(c, a.expires))
        end
    end
end

-- What is known of a link once a request was carried out.
local function seen_with(c, q, removal)
    local removals = (removal and q.request or '') .. sub(c.seen or '', 14)
    return q.request .. pack('>I5', c.server_now) .. sub(removals, 1, 8 * REMOVALS)
end

local function write_seen(c, q)
    call('HSET', c.meta_key, q.link, seen_with(c, q))
end

-- The meta key: numbers, counts, which requests were seen, and that it lives as long as the last document.
local function write_meta(c, q, expires)
    local fields = { 'n', string.format('%.0f', c.last), q.link, c.seen }
    local count = 4
    for field in pairs(c.live_changed or {}) do
        if c.live[field] > 0 then
            fields[count + 1], fields[count + 2] = field, string.format('%.0f', c.live[field])
            count = count + 2
        else
            call('HDEL', c.meta_key, field)
        end
    end
    if c.ends then
        expires, c.latest = math.max(expires or 0, c.ends), ''
        call('PEXPIREAT', c.prefix .. 'q', goes_at_digits(c, c.ends), 'LT')
    end
    if expires and c.latest ~= '0' then
        local goes = expires == NEVER and 0 or goes_at(c, expires)
        if goes == 0 then
            call('PERSIST', c.meta_key)
        elseif c.latest == '' or goes > tonumber(c.latest) then
            call('PEXPIREAT', c.meta_key, goes_at_digits(c, expires))
        else
            goes = nil
        end
        if goes then
            fields[count + 1], fields[count + 2] = 'x', string.format('%.0f', goes)
        end
    end
    call('HSET', c.meta_key, unpack(fields))
end

-- Duplicates that were counted, of all documents.
local function write_totals(c)
    for i, field in ipairs({ 'u', 'w', 't' }) do
        if c.totals[i] > 0 then
            call('HINCRBY', c.meta_key, field, c.totals[i])
        end
    end
    call('HSET', c.meta_key, 'z', string.format('%.0f', c.totals[4]))
end

local function write_buckets(c)
    for key, how in pairs(c.changed) do
        local bucket = c.buckets[key]
        if bucket and how == STAYS then
            call('SET', key, bucket, 'KEEPTTL')
        elseif bucket then
            set(c, key, bucket, (unpack_from('>I4', bucket, 5)))
        else
            call('DEL', key)
        end
    end
end

-- Writes all; `removal`: the request removed something. `expires` is the time of a new document. The totals come first,
-- as they fail when somebody else has written there.
local function write_all(c, q, removal, expires)
    if c.totals then
        write_totals(c)
    end
    c.seen = seen_with(c, q, removal)
    write_buckets(c)
    write_lists(c)
    write_titles(c)
    for from = 1, c.deleted and #c.deleted or 0, AT_ONCE do
        call('DEL', unpack(c.deleted, from, math.min(from + AT_ONCE - 1, #c.deleted)))
    end
    for _, one in ipairs(c.sets or {}) do
        set(c, one[1], one[2], one[3])
    end
    if c.counts then
        call('SETRANGE', c.counts[1], COUNTS_AT - 1, c.counts[2])
    end
    if c.empty then
        call('DEL', c.meta_key, c.prefix .. 'q')
        call('SET', c.prefix .. q.link, c.seen, 'PX', LAST_FOR)
        return
    end
    for from = 1, c.expired and #c.expired or 0, AT_ONCE do
        call('HDEL', c.meta_key, unpack(c.expired, from, math.min(from + AT_ONCE - 1, #c.expired)))
    end
    write_meta(c, q, expires)
end
