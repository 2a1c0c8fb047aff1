-- The original of a document: whoever has its URL, else its words, else near content, else a similar title.

local CHECK, ADD, RESTORE = 0, 1, 2

-- What is asked about; redis_request.c makes the arguments.
local REQUEST = '>BBBBBI5I5I5I5dc8'

local function read_request(argv)
    local op, flags, on_duplicate, reason, document_flags, now, ttl, added, expires, share, token =
        unpack_from(REQUEST, argv[5])
    return {
        again = argv[1] == '1',
        link = 'r' .. argv[2],
        request = argv[3],
        op = op,
        given = flags % 2 == 1,
        refresh = flags % 4 >= 2,
        has_origin = flags >= 4,
        on_duplicate = on_duplicate,
        reason = reason,
        document_flags = document_flags,
        content = document_flags % 2 == 1,
        now = now,
        ttl = ttl,
        added = added,
        expires = expires,
        title_share = share,
        token = token,
        id_place = argv[6],
        url_place = argv[7],
        digest_place = argv[8],
        fingerprint = argv[9],
        digest = argv[10],
        id = argv[11],
        canonical = argv[12],
        rest = argv[13],
        -- What is empty at the end is left out.
        homes = argv[14] or '',
        probes = argv[15] or '',
        text = argv[16] or '',
        origin = argv[17] or '',
        title = argv[18] or '',
        title_place = argv[19] or '',
        title_homes = argv[20] or '',
        title_probes = argv[21] or '',
        counts = argv[22] or '',
        original_id = argv[23] or '',
        original_place = argv[24] or '',
    }
end

-- Reads all keys that can be told from the request at once. The new document's own is among them: whether it can be
-- written shows here.
local function read_keys(c, q)
    local keys = { document_key(c, c.last + 1) }
    local count, names = 1, c.prefix .. 'n'
    local function add_name(place)
        if place ~= '' then
            count = count + 1
            keys[count] = names .. sub(place, 1, -5)
        end
    end
    add_name(q.id_place)
    if q.url_place ~= q.id_place then
        add_name(q.url_place)
    end
    add_name(q.digest_place)
    add_name(q.original_place)
    add_keys(keys, c.prefix .. 'b', q.homes, c.memory.band_bytes + 1)
    local homes = #keys
    add_keys(keys, c.prefix .. 'b', q.probes, c.memory.band_bytes + 1)
    local values = get_all(keys)
    if values[1] then
        damaged('the key ' .. c.meta_key .. ', whose last number is too low')
    end
    for i = 2, #keys do
        take_bucket(c, keys[i], i > count and c.band_size or NAME_SIZE, values[i])
    end
    c.band_keys, c.first_band, c.last_home = keys, count + 1, homes
end

-- ---- near content ----

-- Bits that differ, if they are not more than `most`; else some number above it.
local function distance_at(bytes, bucket, at, most)
    local sum = 0
    for i = 1, #bytes do
        sum = sum + ONES[bxor(bytes[i], byte(bucket, at + i - 1))]
        if sum > most then
            break
        end
    end
    return sum
end

local function take_near(c, bucket, bytes, at, hits)
    local distance = distance_at(bytes, bucket, at, c.near)
    if distance <= c.near then
        local number, expires = unpack_from('>I5I4', bucket, at + c.width)
        if expires > c.now then
            hits[#hits + 1] = { distance, number }
        end
    end
end

-- Adds to `hits` what is near in a bucket. Where at most three bits differ, one of any four bytes is the same: bytes that
-- are no part of the key tell most entries apart.
local FEW = 3

local function scan_few(c, bucket, bytes, first, hits)
    local a, b, d, e = bytes[first + 1], bytes[first + 2], bytes[first + 3], bytes[first + 4]
    for at = BUCKET_HEAD + 1 + first, #bucket, c.band_size do
        local x, y, z, w = byte(bucket, at, at + 3)
        if x == a or y == b or z == d or w == e then
            take_near(c, bucket, bytes, at - first, hits)
        end
    end
end

-- The same for any distance and width.
local function scan_any(c, bucket, bytes, _, hits)
    for at = BUCKET_HEAD + 1, #bucket, c.band_size do
        take_near(c, bucket, bytes, at, hits)
    end
end

local function is_nearer(a, b)
    return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2])
end

-- Who is near, the nearest first, then by number; one may be there several times.
local function find_near(c, fingerprint)
    local bytes, hits, candidates = { byte(fingerprint, 1, c.width) }, {}, 0
    local scan = c.near <= FEW and c.width > FEW and scan_few or scan_any
    for i = c.first_band, #c.band_keys do
        local key = c.band_keys[i]
        local bucket = c.buckets[key]
        if bucket then
            candidates = candidates + (#bucket - BUCKET_HEAD) / c.band_size
            scan(c, bucket, bytes, c.memory.tables[byte(key, #c.prefix + 2) + 1].first, hits)
        end
    end
    if #hits > 1 then
        table.sort(hits, is_nearer)
    end
    return hits, candidates
end

local function nearest(c, q, f)
    local hits, candidates = find_near(c, q.fingerprint)
    f.candidates = f.candidates + candidates
    for i = 1, #hits do
        local d = get_document(c, hits[i][2])
        if d and d.kind == DOCUMENT then
            f.distance = hits[i][1]
            return d
        end
    end
end

-- ---- all together ----

local URL, WORDS, TITLE = 1, 2, 3

-- What a document is a copy of: f.reason (0: of none) and f.original.
local function find_original(c, q)
    local f = { reason = 0, candidates = 0, distance = 255, title = -1 }
    local d = find_name(c, q.url_place, has_url, q.canonical)
    f.by_url = d
    if d and d.kind == COPY then
        d = get_document(c, d.of)
    end
    f.reason = d and URL or 0
    if not d then
        d = find_name(c, q.digest_place, has_words, q.digest)
        f.reason = d and WORDS or 0
    end
    f.candidates = d and 1 or 0
    if not d and q.content then
        d = nearest(c, q, f)
        f.reason = d and WORDS or 0
    end
    if not d then
        d = similar_title(c, q, f)
        f.reason = d and TITLE or 0
    end
    f.original = d
    return f
end

-- Whether a document has the same words (or, where digests are not known, the same fingerprint and URL).
local function same_words(q, d)
    if q.digest ~= '' or d.digest then
        return q.digest == d.digest
    end
    return q.canonical == (has_flag(d, NO_URL) and '' or d.canonical) and q.fingerprint == d.fingerprint
end

-- Whether it is the request's document itself, by where it comes from.
local function is_from(q, d)
    return q.has_origin and q.op ~= RESTORE and d.origin == q.origin
end
