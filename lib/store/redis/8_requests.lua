-- Requests, each carried out once: the answers to the last ones of a link are kept, and given again to one that is sent
-- again because nobody knows whether it was carried out.

-- For what follows. The rest is within a block, as a library has room for 200 names.
local was_seen, is_late, note_seen, check, add

do

-- ---- answers that are kept ----

-- So many, each in the place of its number: more than a link has on its way. Number of the request, head of the answer.
local OUTCOMES, OUTCOME_SIZE = 1024, 34

local function outcomes_key(c, link)
    return c.prefix .. 'o' .. sub(link, 2)
end

-- Reads what is kept in the place of a request, and how long the answers will be kept.
local function read_outcome(c, q)
    c.outcomes_key = outcomes_key(c, q.link)
    c.outcome_at = unpack_from('>I4', q.request, 5) % OUTCOMES * OUTCOME_SIZE
    c.outcomes_left = q.again and 0 or call('PTTL', c.outcomes_key)
    return call('GETRANGE', c.outcomes_key, c.outcome_at, c.outcome_at + OUTCOME_SIZE - 1)
end

-- Keeps an answer for as long as anybody may ask for it again, and not longer than the memory itself; `expires` is the
-- time of a new document.
local function keep_outcome(c, q, given, expires)
    local goes = c.clock + LAST_FOR
    if c.empty then
        call('DEL', c.outcomes_key)
        return given
    elseif c.latest ~= '0' and expires ~= NEVER then
        local latest = math.max(tonumber(c.latest) or 0, expires and goes_at(c, expires) or 0)
        goes = math.max(math.min(goes, latest), c.clock + 1)
    end
    call('SETRANGE', c.outcomes_key, c.outcome_at, q.request .. given[1])
    if c.outcomes_left < LAST_FOR / 2 then
        call('PEXPIREAT', c.outcomes_key, string.format('%.0f', goes))
    end
    return given
end

-- The documents of an answer that was kept; nil: one of them is gone.
local function complete(c, head)
    local _, reason, flags, number, original = unpack_from('>BBBI5I5', head)
    local of = original > 0 and get_document(c, original)
    if flags % 2 == KNOWN then
        local own = get_document(c, number)
        return own and (of or original == 0) and { head, (of or own).raw, own.raw }
    elseif reason == 0 then
        return { head }
    end
    return of and { head, of.raw }
end

local function has_token(_, d, token)
    return d.token == token
end

-- What the document that a request has added tells; nil: it is not there.
local function answer_of_document(c, q)
    local d = find_name(c, q.id_place, has_token, q.token)
    return d and give_again(c, d, has_flag(d, REPLACED) and TOOK_PLACE or 0)
end

-- What the answer must have been where no document tells: all is looked up once more. nil: nothing tells, as what it was a
-- copy of is gone. Then it is carried out now, as nobody was told of the first time.
local function guess(c, q)
    local a = look_up(c, q)
    if a.again then
        return give_again(c, a.again, KNOWN)
    elseif a.found and a.found.reason == 0 then
        c.excepted = nil
        return nil
    end
    return answer(a.found and OK or NO_ORIGINAL, a.found, 0, 0)
end

-- Whether one number of a request is higher than another, or the same. Numbers are compared: texts stand in the order of
-- the server's language.
local function is_past(number, other)
    local high, low = unpack_from('>I4I4', number)
    local other_high, other_low = unpack_from('>I4I4', other)
    return high > other_high or (high == other_high and low >= other_low)
end

-- The answer to a request that was carried out the first time it was sent; nil: it was not, or has to be once more. Where
-- a later one stands in its place, or answers that old are not kept any more, what was added tells. A request that is
-- sent for the first time and finds its own answer, or a later one, is late: it was on its way on a connection that its
-- sender has given up, and has been carried out on another. (A link has fewer requests on their way than answers are
-- kept.) Nobody waits for its answer.
local function answer_again(c, q, kept)
    local past = #kept == OUTCOME_SIZE and is_past(kept, q.request)
    if not q.again then
        return past and answer(OK, nil, 0, 0) or nil
    end
    local told = past and sub(kept, 1, 8) == q.request and complete(c, sub(kept, 9))
    return told or answer_of_document(c, q) or (past and guess(c, q)) or nil
end

-- ---- the functions ----

local function open(keys, argv)
    start()
    local q = read_request(argv)
    local c = begin(keys[1], q.now)
    local expires = q.op == RESTORE and q.expires or q.ttl == NO_TTL and 0 or c.now + q.ttl
    local field = live_field(q.reason ~= 0 and COPY or DOCUMENT, q.op == RESTORE and q.added or c.now, expires)
    return q, c, read_meta(c, argv[4], q.link, field)
end

-- Whether a request was carried out the first time it was sent, if all before the last that was seen were.
function was_seen(q, seen)
    return q.again and seen and #seen >= 8 and is_past(seen, q.request)
end

-- Whether a removal, which is always the last request of its link, comes after a later one, or after itself: see
-- answer_again.
function is_late(q, seen)
    return not q.again and seen and #seen >= 8 and is_past(seen, q.request)
end

-- Remembers that a removal that was sent again has found nothing, so that the first one, if it comes late, finds nothing
-- either.
function note_seen(c, q, there)
    if there then
        write_seen(c, q)
    else
        call('SET', c.prefix .. q.link, seen_with(c, q), 'PX', LAST_FOR)
    end
end

function check(keys, argv)
    local q, c, there = open(keys, argv)
    if not there then
        return answer(OK, nil, 0, 0)
    end
    read_keys(c, q)
    return answer(OK, find_refreshed(c, q, { gone = {} }), 0, 0)
end

function add(keys, argv)
    local q, c, there = open(keys, argv)
    if not there then
        if not was_seen(q, call('GET', c.prefix .. q.link)) then
            another()
        end
        return answer(OK, nil, 0, 0)
    end
    read_keys(c, q)
    local told = answer_again(c, q, read_outcome(c, q))
    if told then
        return told
    end
    local a = look_up(c, q)
    if a.again then
        write_seen(c, q)
        return keep_outcome(c, q, give_again(c, a.again, KNOWN))
    elseif not a.found then
        return answer(NO_ORIGINAL, nil, 0, 0)
    end
    local kept = is_kept(c, q, a)
    if a.found.reason ~= 0 and q.op ~= RESTORE then
        count_duplicate(c, a.found)
        if a.found.reason == TITLE then
            count_title(c, a.found.original.title, 1)
        end
    end
    for _, d in ipairs(a.gone) do
        remove_document(c, d)
    end
    if kept then
        add_document(c, q, a)
    end
    if not c.seen then
        c.expired = expired_fields(c)
    end
    if #a.gone > 0 then
        end_meta(c, q)
    end
    write_all(c, q, false, a.time)
    local flags = (#a.gone > 0 and TOOK_PLACE or 0) + (c.empty and EMPTIED or 0)
    return keep_outcome(c, q, answer(OK, a.found, flags, kept and a.number or 0), a.time)
end

end
