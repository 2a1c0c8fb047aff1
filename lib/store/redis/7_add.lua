-- What follows from what was found, as lib/engine/before.c and lib/engine/add.c have it.

local SKIP, STORE = 1, 3 -- of doppel_on_duplicate
local OK, NO_ORIGINAL = 0, 1
local KNOWN, TOOK_PLACE, FOUND, EMPTIED = 1, 2, 4, 8
local NO_TTL = 2 ^ 40 - 1

-- code, reason, flags, own number, original's number, candidates, distance, similarity of titles; then documents.
local function answer(code, f, flags, number, documents)
    local original = f and f.original
    local head = pack('>BBBI5I5I4Bd', code, f and f.reason or 0, flags, number, original and original.number or 0,
        f and math.min(f.candidates, NEVER) or 0, f and f.distance or 255, f and f.title or -1)
    return { head, unpack(documents or { original and original.raw }) }
end

-- ---- what was there before ----

-- What goes, and is not looked at any more.
local function leave(c, a, d)
    c.excepted = c.excepted or {}
    c.excepted[d.number] = true
    a.gone[#a.gone + 1] = d
end

-- Who has the id: itself (a.again), another document with the same words (a.holder), or what it takes the place of.
local function look_up_id(c, q, a)
    local d = (q.given or q.has_origin) and find_name(c, q.id_place, has_id, q.id)
    if not d then
        return
    end
    local orphan = is_orphan(c, d)
    if not orphan and is_from(q, d) then
        a.again = d
    elseif not q.given then
        return
    elseif orphan or not same_words(q, d) then
        leave(c, a, d)
    elseif q.has_origin and q.op ~= RESTORE then
        a.holder = d
    else
        a.again = d
    end
end

-- With other words at a known URL, what is there goes, and all is looked up once more.
local function find_refreshed(c, q, a)
    local f = find_original(c, q)
    local d = f.by_url
    if f.reason == URL and q.refresh and not is_from(q, f.original) and not same_words(q, d) then
        leave(c, a, d)
        f = find_original(c, q)
    end
    return f
end

-- What is put back: a copy's original is named.
local function find_restored(c, q)
    local f = { reason = q.reason, candidates = 0, distance = 255, title = -1 }
    if q.reason ~= 0 then
        f.original = find_name(c, q.original_place, has_id, q.original_id)
        if not f.original or f.original.kind ~= DOCUMENT then
            return nil
        end
    end
    return f
end

local function look_up(c, q)
    local a = { gone = {} }
    look_up_id(c, q, a)
    if a.again then
        return a
    end
    a.found = q.op == RESTORE and find_restored(c, q) or q.op ~= RESTORE and find_refreshed(c, q, a) or nil
    if a.found and a.found.original and is_from(q, a.found.original) then
        a.again = a.found.original
    elseif a.found and a.holder and a.found.reason == 0 then
        leave(c, a, a.holder)
    end
    return a
end

-- The first verdict of a document again.
local function give_again(c, d, flags)
    local f = { reason = d.reason, candidates = 0, distance = 255, title = -1 }
    if d.kind == COPY then
        f.original = get_document(c, d.of)
    end
    return answer(OK, f, flags, d.number, { f.original and f.original.raw or d.raw, d.raw })
end

-- ---- what follows ----

local function count_duplicate(c, f)
    local d = f.original
    local by = { d.by1, d.by2, d.by3 }
    by[f.reason] = math.min(by[f.reason] + 1, NEVER)
    c.totals = { 0, 0, 0, c.now }
    c.totals[f.reason] = 1
    c.counts = { document_key(c, d.number), pack(COUNTS, by[1], by[2], by[3], math.max(d.last, c.now)) }
end

-- Counts that come with what is put back.
local function restored_counts(c, q)
    local by = { unpack_from(COUNTS, q.counts) }
    if by[1] + by[2] + by[3] > 0 then
        c.totals = by
    end
    return sub(q.counts, 1, COUNTS_SIZE)
end

-- Whether the document itself is remembered. A copy without a name of its own has nothing to add.
local function is_kept(c, q, a)
    if a.found.reason == 0 then
        return true
    elseif a.holder or (q.op ~= RESTORE and q.on_duplicate == SKIP) then
        return false
    end
    return q.given or not find_name(c, q.id_place, has_id, q.id)
end

local function document_bytes(c, q, a, counts)
    local f, flags = a.found, q.document_flags
    local copy = f.reason ~= 0
    local whole = not copy or q.op == RESTORE or q.on_duplicate == STORE
    local original_id = copy and f.original.id or ''
    local same_id = flags % 8 >= SAME_ID
    flags = flags + (f.reason == URL and NO_URL or 0) + (#a.gone > 0 and REPLACED or 0)
    if whole and q.text ~= '' then
        flags = flags + HAS_TEXT
        c.sets[#c.sets + 1] = { c.prefix .. 'x' .. few_bytes(a.number), q.text, a.time }
        call('STRLEN', c.prefix .. 'x' .. few_bytes(a.number))
    end
    local id, origin = same_id and '' or q.id, q.has_origin and #q.origin + 1 or 0
    return pack('>BBBBI5I5', 1, copy and COPY or DOCUMENT, flags, f.reason, a.added, a.expires) .. counts
        .. pack('>I5c8I3', copy and f.original.number or 0, q.token, #original_id)
        .. pack('>I3I3I3I2', #id, #q.canonical, #q.title, origin)
        .. q.fingerprint .. q.digest .. id .. q.canonical .. q.origin .. q.title .. q.rest .. original_id
end

-- The names and bands that it is found by.
local function add_places(c, q, a)
    local f = a.found
    if q.id_place ~= '' then
        add_name(c, q.id_place, a.number, a.time)
    end
    if q.url_place ~= '' and q.url_place ~= q.id_place and f.reason ~= URL then
        add_name(c, q.url_place, a.number, a.time)
    end
    if f.reason ~= 0 then
        return add_link(c, f.original.number, a.number, a.time)
    end
    if q.digest_place ~= '' then
        add_name(c, q.digest_place, a.number, a.time)
    end
    if q.content then
        local entry = q.fingerprint .. pack('>I5I4', a.number, a.time)
        for i = c.first_band, c.last_home do
            add_entry(c, c.band_keys[i], c.band_size, entry, a.time)
        end
    end
    if q.title ~= '' and c.memory.title_bits > 0 then
        add_title(c, q, a.number, a.time)
        if q.op == RESTORE then
            count_title(c, q.title, (unpack_from('>I4', q.counts, 9)))
        end
    end
end

local function add_document(c, q, a)
    a.added, a.expires = c.now, q.ttl == NO_TTL and 0 or c.now + q.ttl
    if q.op == RESTORE then
        a.added, a.expires = q.added, q.expires
    end
    a.number = c.last + 1
    if a.expires ~= 0 and a.expires <= c.now then
        return -- it has expired already
    end
    a.time = bucket_time(a.expires)
    c.rounded = a.expires == 0 and NEVER or math.min(round_up(a.added, a.expires), NEVER - 1)
    local counts = q.op == RESTORE and restored_counts(c, q) or pack(COUNTS, 0, 0, 0, 0)
    c.sets = {}
    local raw = document_bytes(c, q, a, counts)
    c.sets[#c.sets + 1] = { document_key(c, a.number), raw, a.time }
    add_places(c, q, a)
    local kind = a.found.reason ~= 0 and COPY or DOCUMENT
    local field = live_field(kind, a.added, a.expires)
    count_live(c, kind, a.added, a.expires, 1)
    if c.live[field] == 1 then
        c.expired = expired_fields(c)
    end
    c.last = a.number
end
