-- What a call works on: the keys that it has read, and those that it will write.

-- Names (ids, canonical URLs, digests) are looked up by 4 bytes of a hash: hash, number, time.
local NAME_SIZE = 13

-- Times are rounded up to a power of two of at most 1/256 of the whole time of a document, so that few of them differ.
local function round_up(added, expires)
    local step = 1
    while step * 512 <= expires - added do
        step = step * 2
    end
    return math.ceil(expires / step) * step
end

-- The field of the meta key that counts what expires when a document does.
local fields_made, field_time, field_whole = {}, nil, nil

local function live_field(kind, added, expires)
    if field_time ~= expires or field_whole ~= expires - added then
        local rounded = expires == 0 and '0' or string.format('%.0f', round_up(added, expires))
        fields_made, field_time, field_whole = { 'd' .. rounded, 'c' .. rounded }, expires, expires - added
    end
    return fields_made[kind]
end

-- The clocks: of the caller, who may have his own, and of the server, in milliseconds.
local function begin(key, now)
    start()
    local time = call('TIME')
    local seconds = tonumber(time[1])
    return {
        prefix = sub(key, 1, -2),
        meta_key = key,
        buckets = {},
        changed = {},
        documents = {},
        live = {},
        clock = seconds * 1000 + floor(time[2] / 1000),
        server_now = seconds,
        now = now > 0 and now or seconds,
        last = 0,
        latest = '',
        width = 0,
        band_size = 0,
        near = 0,
        memory = false,
        seen = false,
        band_keys = false,
        first_band = 0,
        last_home = 0,
        sets = false,
        rounded = 0,
    }
end

-- The caller knows another memory than is there, or knows one where there is none: what he asks with makes no sense.
local function another()
    error({ err = 'ANOTHER memory is there, or none' })
end

-- What never changes of the memories that were met, by epoch.
local memories, memory_count = {}, 0

local function read_memory(c, epoch)
    local m = call('HMGET', c.meta_key, 'k', 'g')
    local seed, geometry = m[1], m[2]
    if not seed or not geometry or #geometry < 15 or #geometry ~= 15 + 3 * byte(geometry, 6) then
        damaged('the key ' .. c.meta_key)
    end
    local memory = { seed = seed, tables = {} }
    memory.width, memory.name_bits, memory.name_bytes, memory.band_bytes, memory.distance = byte(geometry, 1, 5)
    memory.title_bits, memory.title_least = unpack_from('>Bd', geometry, 7)
    for at = 16, #geometry, 3 do
        local from, width = byte(geometry, at, at + 1)
        local first = math.ceil((from + width) / 8) -- of the bytes behind the key four are compared first, if there are four
        first = first + 4 <= memory.width and first or 0
        memory.tables[#memory.tables + 1] = { from = from, width = width, first = first }
    end
    memories = memory_count < 1000 and memories or {}
    memory_count = memory_count % 1000 + 1
    memories[epoch] = memory
    return memory
end

-- Reads the meta key; false: there is none. Another memory's is an error. `link` is the field of who asks, `field`
-- counts what is live; both may be nil.
local function read_meta(c, epoch, link, field)
    local m = call('HMGET', c.meta_key, 'e', 'n', 'x', link or 'e', field or 'e')
    if not m[1] then
        return false
    elseif m[1] ~= epoch then
        another()
    end
    c.last, c.latest, c.seen = tonumber(m[2]), m[3], link and m[4]
    if not c.last or c.last < 0 or c.last >= 2 ^ 40 or not c.latest or not (c.latest == '' or tonumber(c.latest)) then
        damaged('the key ' .. c.meta_key)
    end
    if field then
        c.live[field] = tonumber(m[5]) or 0
    end
    local memory = memories[epoch] or read_memory(c, epoch)
    c.memory, c.width, c.band_size, c.near = memory, memory.width, memory.width + 9, memory.distance
    return true
end

local function count_live(c, kind, added, expires, more)
    local field = live_field(kind, added, expires)
    if not c.live[field] then
        c.live[field] = tonumber(call('HGET', c.meta_key, field)) or 0
    end
    c.live[field] = c.live[field] + more
    c.live_changed = c.live_changed or {}
    c.live_changed[field] = true
end

-- When a key has to go, in milliseconds of the server's clock: what is left by the caller's clock counts.
local function goes_at(c, expires)
    if c.now == c.server_now then
        return expires * 1000
    end
    return c.clock + (expires - c.now) * 1000
end

-- The same in digits. Most that is written at a time goes at one time.
local digits_of, digits

local function goes_at_digits(c, expires)
    local goes = goes_at(c, expires)
    if digits_of ~= goes then
        digits_of, digits = goes, string.format('%.0f', goes)
    end
    return digits
end

-- ---- keys ----

local function set(c, key, value, expires)
    if expires == NEVER then
        call('SET', key, value)
    else
        call('SET', key, value, 'PXAT', goes_at_digits(c, expires))
    end
end

-- Keys in one argument, each of the same size, behind those that are in the list.
local function add_keys(keys, prefix, packed, size)
    for at = 1, #packed, size do
        keys[#keys + 1] = prefix .. sub(packed, at, at + size - 1)
    end
end

-- How many values one call may have: they stand on a stack of 8,000.
local AT_ONCE = 4000

local function get_all(keys)
    if #keys <= AT_ONCE then
        return call('MGET', unpack(keys))
    end
    local values = {}
    for from = 1, #keys, AT_ONCE do
        local some = call('MGET', unpack(keys, from, math.min(from + AT_ONCE - 1, #keys)))
        for i = 1, #some do
            values[from + i - 1] = some[i]
        end
    end
    return values
end

local function document_key(c, number)
    return c.prefix .. 'd' .. few_bytes(number)
end

-- A document that is there and has not expired; nil: it is not. `excepted` ones are not there.
local function get_document(c, number)
    if c.excepted and c.excepted[number] then
        return nil
    end
    local d = c.documents[number]
    if d == nil then
        local raw = call('GET', document_key(c, number))
        d = raw and read_document(number, raw, c.width) or false
        if d and d.expires ~= 0 and d.expires <= c.now then
            d = false
        end
        c.documents[number] = d
    end
    return d or nil
end

local function is_orphan(c, d)
    return d.kind == COPY and not get_document(c, d.of)
end

-- ---- buckets ----

local function take_bucket(c, key, size, bucket)
    if bucket then
        check_bucket(key, bucket, size)
    end
    c.buckets[key] = bucket
    return bucket
end

local function get_bucket(c, key, size)
    local bucket = c.buckets[key]
    if bucket == nil then
        bucket = take_bucket(c, key, size, call('GET', key))
    end
    return bucket
end

-- The end of a bucket's key: it is put anew, or stays (which holds if it has stayed so far).
local MOVED, STAYS = 1, 2

local function put_bucket(c, key, bucket, stays)
    c.buckets[key] = bucket or false
    c.changed[key] = stays and c.changed[key] ~= MOVED and STAYS or MOVED
end

local function add_entry(c, key, size, entry, expires)
    local bucket, stays = with_entry(get_bucket(c, key, size), size, entry, expires, c.rounded, c.now)
    put_bucket(c, key, bucket, stays)
end

local function remove_entry(c, key, size, bytes)
    local bucket = get_bucket(c, key, size)
    local at = bucket and find_entry(bucket, size, bytes)
    if at then
        put_bucket(c, key, sift(bucket, size, c.now, at))
    end
end

-- ---- names ----

-- The bucket of a name and its hash there: 4 bytes and 4 bytes of SHA-1 over the secret, the kind and the name.
local function name_place(c, kind, name)
    local memory = c.memory
    local hash = redis.sha1hex(memory.seed .. kind .. name)
    local bucket = floor(tonumber(sub(hash, 1, 8), 16) / 2 ^ (32 - memory.name_bits))
    return pack('>I' .. memory.name_bytes, bucket), pack('>I4', tonumber(sub(hash, 9, 16), 16))
end

-- The first document, by number, that has the name and that `is` takes.
local function find_name(c, place, is, name)
    if place == '' then
        return nil
    end
    local bucket = get_bucket(c, c.prefix .. 'n' .. sub(place, 1, -5), NAME_SIZE)
    local hash, at, best = sub(place, -4), nil, nil
    at = bucket and find_entry(bucket, NAME_SIZE, hash)
    while at do
        local number = unpack_from('>I5', bucket, at + 4)
        if not best or number < best.number then
            local d = get_document(c, number)
            if d and is(c, d, name) then
                best = d
            end
        end
        at = find_entry(bucket, NAME_SIZE, hash, at + NAME_SIZE)
    end
    return best
end

local function has_id(_, d, id)
    return d.id == id
end

-- A copy of what is gone says nothing about its URL.
local function has_url(c, d, url)
    return d.canonical == url and not has_flag(d, NO_URL) and not is_orphan(c, d)
end

local function has_words(_, d, digest)
    return d.kind == DOCUMENT and d.digest == digest
end

-- ---- bands ----

-- Bits of a fingerprint, from the top, as a number: at most 30 of them, so that they are in at most 5 bytes.
local function cut_bits(fingerprint, from, width)
    local first, behind = floor(from / 8), floor((from + width + 7) / 8)
    local value = unpack_from('>I' .. (behind - first), fingerprint, first + 1)
    return floor(value / 2 ^ (behind * 8 - from - width)) % 2 ^ width
end

-- The place of a document in each table: the table's number, then its key.
local function band_keys(c, fingerprint)
    local keys, form = {}, '>I' .. c.memory.band_bytes
    for t, one in ipairs(c.memory.tables) do
        keys[t] = c.prefix .. 'b' .. char(t - 1) .. pack(form, cut_bits(fingerprint, one.from, one.width))
    end
    return keys
end
