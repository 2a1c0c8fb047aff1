-- Titles as evidence: whose title is most like this one, and which titles are too frequent to tell.
--
-- A distinct title is one key: its text and its owners, a bucket of them. Any number may have one title, so that an owner
-- more is appended, and only the first ones are read unless some have expired. Segments by pigeonhole lead to it, as
-- lib/index/titles.c explains; here the cuts are always even. The client works out what to look up (redis_titles.c).

-- For what follows. The rest is within a block, as a library has room for 200 names.
local similar_title, add_title, remove_title, count_title, write_titles

do

local FEW_OWNERS = 8 -- so many owners are never too many
local OWNER_SIZE = 9 -- number and time
local SEEN_SIZE = 8 -- how often, and until when
local SEGMENT_PLACE, SEGMENT_SIZE = 7, 16 -- bucket and hash; hash, the title's place, time

-- ---- a title's key ----

local function title_place(c, title)
    local hash = redis.sha1hex(c.memory.seed .. 't' .. title)
    return pack('>I4I4', tonumber(sub(hash, 1, 8), 16), tonumber(sub(hash, 9, 16), 16))
end

-- What is read of a title at first: mostly its text, and some owners.
local FIRST_BYTES = 256

-- A title as it stands there: text, where its bucket of owners begins, how many they are, the first of them.
local function read_title(key)
    local raw = call('GETRANGE', key, 0, FIRST_BYTES - 1)
    local length = #raw >= 3 and unpack_from('>I3', raw)
    local behind = length and 3 + length + BUCKET_HEAD
    if length and #raw < behind + OWNER_SIZE then
        raw = call('GETRANGE', key, 0, behind + OWNER_SIZE - 1)
    end
    local size = length and call('STRLEN', key) - behind or 0
    if raw == '' then
        return nil
    elseif size <= 0 or size % OWNER_SIZE ~= 0 then
        damaged('a title')
    end
    local entry = { key = key, title = sub(raw, 4, 3 + length), at = 3 + length }
    entry.count, entry.first = size / OWNER_SIZE, sub(raw, behind + 1)
    entry.earliest, entry.latest = unpack_from('>I4I4', raw, 4 + length)
    return entry
end

-- Its owners, all of them, as a bucket; false: it has none.
local function all_owners(entry)
    if entry.owners == nil then
        entry.owners = call('GETRANGE', entry.key, entry.at, -1)
    end
    return entry.owners
end

-- They are others now: a bucket, or nil.
local function put_owners(entry, owners)
    entry.owners, entry.count, entry.earliest, entry.latest, entry.first = owners or false, 0, NEVER, 0, ''
    if owners then
        entry.count = (#owners - BUCKET_HEAD) / OWNER_SIZE
        entry.first = sub(owners, BUCKET_HEAD + 1, BUCKET_HEAD + 8 * OWNER_SIZE)
        entry.earliest, entry.latest = unpack_from('>I4I4', owners)
    end
end

-- What is known of a title; nil: nothing. Owners that have expired are left out.
local function get_title(c, place)
    c.titles = c.titles or {}
    if c.titles[place] == nil then
        local entry = read_title(c.prefix .. 't' .. place)
        if entry and entry.earliest <= c.now then
            put_owners(entry, sift(all_owners(entry), OWNER_SIZE, c.now))
        end
        c.titles[place] = entry or false
    end
    return c.titles[place] or nil
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
    local times = (entry and entry.count or 0) + get_seen(c, place)[1]
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

-- The first owner, of those in these bytes, that is there.
local function find_owner(c, bytes, at)
    while at + OWNER_SIZE - 1 <= #bytes do
        local d = get_document(c, (unpack_from('>I5', bytes, at)))
        if d and d.kind == DOCUMENT then
            return d
        end
        at = at + OWNER_SIZE
    end
end

local function first_owner(c, entry)
    local few = find_owner(c, entry.first, 1)
    if few or #entry.first >= entry.count * OWNER_SIZE then
        return few
    end
    return find_owner(c, all_owners(entry), BUCKET_HEAD + 1)
end

function similar_title(c, q, f)
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
function add_title(c, q, number, time)
    local entry = get_title(c, q.title_place) or { title = q.title, owners = false, latest = 0 }
    local latest, owner = entry.latest, pack('>I5I4', number, time)
    if entry.title ~= q.title then
        damaged('a title')
    end
    if entry.owners == nil then
        entry.appended, entry.stays = owner, time <= latest
        entry.earliest, entry.latest = math.min(entry.earliest, time), math.max(latest, time)
    else
        put_owners(entry, (with_entry(entry.owners, OWNER_SIZE, owner, time, time, c.now)))
    end
    change_title(c, q.title_place, entry)
    for at = 1, time > latest and #q.title_homes or 0, SEGMENT_PLACE do
        local place = sub(q.title_homes, at, at + SEGMENT_PLACE - 1)
        local bytes = sub(place, 4) .. q.title_place
        remove_entry(c, segment_key(c, place), SEGMENT_SIZE, bytes)
        add_entry(c, segment_key(c, place), SEGMENT_SIZE, bytes .. pack('>I4', time), time)
    end
end

function remove_title(c, d)
    local place = title_place(c, d.title)
    local entry = get_title(c, place)
    local owners = entry and all_owners(entry)
    local at = owners and find_entry(owners, OWNER_SIZE, pack('>I5', d.number))
    if at then
        put_owners(entry, sift(owners, OWNER_SIZE, c.now, at))
        change_title(c, place, entry)
    end
    if entry and not entry.owners then
        for _, segment in ipairs(segment_places(c, d.title)) do
            remove_entry(c, segment_key(c, segment), SEGMENT_SIZE, sub(segment, 4) .. place)
        end
    end
end

-- Copies came by a title. What was counted long ago goes, by chance.
local SAMPLE, LONG_AGO = 4, 2592000

function count_title(c, title, times)
    local place, key = title_place(c, title), c.prefix .. 'q'
    local entry, seen = get_title(c, place), get_seen(c, place)
    if times == 0 then
        return
    end
    seen[2] = entry and entry.latest or 0 -- who had it before and would expire later may be gone
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

local function write_title(c, key, entry)
    if entry.owners then
        set(c, key, pack('>I3', #entry.title) .. entry.title .. entry.owners, entry.latest)
        return
    elseif not entry.appended then
        call('DEL', key)
        return
    end
    call('APPEND', key, entry.appended)
    call('SETRANGE', key, entry.at, pack('>I4I4', entry.earliest, entry.latest))
    if not entry.stays and entry.latest == NEVER then
        call('PERSIST', key)
    elseif not entry.stays then
        call('PEXPIREAT', key, goes_at_digits(c, entry.latest))
    end
end

function write_titles(c)
    for place in pairs(c.titles_changed or {}) do
        write_title(c, c.prefix .. 't' .. place, c.titles[place])
    end
    if c.title_counted then
        write_counted(c, c.title_counted)
    end
end

end
