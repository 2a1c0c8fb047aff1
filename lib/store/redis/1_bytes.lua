-- The functions of a shared memory, as they run inside Redis. The build joins the files of this folder in the order of
-- their names and puts a line before them that defines NAME, the name of the library. docs/FORMAT.md has the keys and
-- bytes, docs/ENGINE.md the rules.
--
-- Every function reads all keys that it will touch before it writes the first, and works out all that it will write:
-- what can fail (keys that are being moved to another node, bytes that nobody of us wrote) fails before anything has
-- changed.
--
-- This file: numbers, documents and buckets as bytes.

-- What Redis has for functions; it is not there yet while a library is loaded.
local call, byte, sub, find, char, floor, concat, pack, unpack_from

local NEVER = 0xFFFFFFFF -- in buckets, what does not expire

-- ONES[a]: how many bits of a byte are set. What is kept here is small: the collector of Lua goes through all of it again
-- and again.
local ONES, bxor = { [0] = 0 }, nil

local function fill_ones()
    for i = 1, 255 do
        ONES[i] = ONES[floor(i / 2)] + i % 2
    end
    bxor = bit.bxor
end

-- Every function calls it first.
local function start()
    if call then
        return
    end
    byte, sub, find, char = string.byte, string.sub, string.find, string.char
    floor, concat = math.floor, table.concat
    pack, unpack_from = struct.pack, struct.unpack
    fill_ones()
    call = redis.call
end

local function damaged(what)
    what = string.gsub(what, '[^%w%p ]', function(c)
        return string.format('\\x%02x', byte(c))
    end)
    error({ err = 'DAMAGED ' .. what .. ' is not what doppel wrote' })
end

-- A number in as few bytes as it needs, for keys.
local function few_bytes(number)
    if number < 256 then
        return char(number)
    elseif number < 65536 then
        return pack('>I2', number)
    elseif number < 16777216 then
        return pack('>I3', number)
    elseif number < 4294967296 then
        return pack('>I4', number)
    end
    return pack('>I5', number)
end

-- ---- documents ----

-- Kinds, and flags of documents.
local DOCUMENT, COPY = 1, 2
local CONTENT, DIGEST, SAME_ID, NO_URL, REPLACED, HAS_TEXT = 1, 2, 4, 8, 16, 32

local HEAD, HEAD_SIZE = '>BBBBI5I5I4I4I4I5I5c8I3I3I3I3I2', 58
local COUNTS_AT, COUNTS, COUNTS_SIZE = 15, '>I4I4I4I5', 17

-- A document's bytes, taken apart as far as is needed to compare it; `width` is that of a fingerprint in bytes.
local function read_document(number, raw, width)
    local d = { number = number, raw = raw }
    local version
    if #raw < HEAD_SIZE + width then
        damaged('document ' .. number)
    end
    local id, canonical, title, origin, original
    version, d.kind, d.flags, d.reason, d.added, d.expires, d.by1, d.by2, d.by3, d.last, d.of, d.token, original, id,
        canonical, title, origin = unpack_from(HEAD, raw)
    local at = HEAD_SIZE + 1
    d.fingerprint = sub(raw, at, at + width - 1)
    at = at + width
    if d.flags % 4 >= DIGEST then
        d.digest = sub(raw, at, at + 31)
        at = at + 32
    end
    local id_at = at
    at = at + id
    d.canonical = sub(raw, at, at + canonical - 1)
    d.id = floor(d.flags / SAME_ID) % 2 == 1 and d.canonical or sub(raw, id_at, at - 1)
    at = at + canonical
    if origin > 0 then -- one more than its length
        d.origin = sub(raw, at, at + origin - 2)
        at = at + origin - 1
    end
    d.title = sub(raw, at, at + title - 1)
    if version ~= 1 or (d.kind ~= DOCUMENT and d.kind ~= COPY) or d.reason > 3 or at + title + original - 1 > #raw then
        damaged('document ' .. number)
    end
    return d
end

local function has_flag(d, flag)
    return floor(d.flags / flag) % 2 == 1
end

-- ---- buckets ----

-- A bucket is the earliest time that an entry of it expires, a time when all of them have (which is when its key goes),
-- 4 bytes each, and entries of one size, each with its time in its last 4 bytes.
local BUCKET_HEAD = 8

local function check_bucket(key, bucket, size)
    if #bucket <= BUCKET_HEAD or (#bucket - BUCKET_HEAD) % size ~= 0 then
        damaged('the bucket ' .. key)
    end
end

-- Without what has expired, and the times of the rest; nil: nothing is left. With `without`, the entry there goes too.
local function sift(bucket, size, now, without)
    local kept, earliest, latest = {}, NEVER, 0
    for at = BUCKET_HEAD + 1, #bucket, size do
        local expires = unpack_from('>I4', bucket, at + size - 4)
        if expires > now and at ~= without then
            kept[#kept + 1] = sub(bucket, at, at + size - 1)
            earliest = expires < earliest and expires or earliest
            latest = expires > latest and expires or latest
        end
    end
    if #kept > 0 then
        return pack('>I4I4', earliest, latest) .. concat(kept)
    end
end

-- With one more entry, whose time is `expires`. What has to be kept until `latest` may be kept until `rounded`, so that
-- the end of a key seldom moves; the second value says that it did not.
local function with_entry(bucket, size, entry, expires, rounded, now)
    if bucket and unpack_from('>I4', bucket) <= now then
        bucket = sift(bucket, size, now)
    end
    if not bucket then
        return pack('>I4I4', expires, rounded) .. entry, false
    end
    local earliest, latest = unpack_from('>I4I4', bucket)
    if expires >= earliest and rounded <= latest then
        return bucket .. entry, true
    end
    earliest = expires < earliest and expires or earliest
    local later = rounded > latest
    return pack('>I4I4', earliest, later and rounded or latest) .. sub(bucket, BUCKET_HEAD + 1) .. entry, not later
end

-- The time of a document in a bucket.
local function bucket_time(expires)
    if expires == 0 then
        return NEVER
    end
    return expires < NEVER and expires or NEVER - 1
end

-- Where an entry that begins with these bytes stands; nil: nowhere.
local function find_entry(bucket, size, bytes, at)
    at = at or BUCKET_HEAD + 1
    while true do
        at = find(bucket, bytes, at, true)
        if not at then
            return nil
        elseif (at - BUCKET_HEAD - 1) % size == 0 then
            return at
        end
        at = at + 1
    end
end
