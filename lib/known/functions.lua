-- functions.lua - what runs inside Redis: a memory is made, numbers are given out, and a commit is carried out if nothing
-- was committed since what it rests on was read. Nothing is searched or compared here. The build puts a line before this
-- text that defines NAME, the name of the library. docs/FORMAT.md section 14 has the keys and values.

local HOUR, NEVER = 3600, 0xFFFFFF
local FORGET_EACH = 64 -- commits of a link
local UNUSED_FOR = 30 * 24 * HOUR * 1000

-- While the slot of the memory moves to another node of a Cluster, keys that are not here may be there, and a call that
-- touches one fails. This one fails before anything is written.
local function touch(prefix)
    redis.call('EXISTS', prefix .. '-')
end

-- Makes the meta key if it is not there: field, value, ... Gives what is there then.
local function make(keys, argv)
    touch(string.sub(keys[1], 1, -2))
    if redis.call('EXISTS', keys[1]) == 0 then
        redis.call('HSET', keys[1], 'n', '0', 'b', redis.call('TIME')[1], unpack(argv))
        redis.call('PEXPIRE', keys[1], UNUSED_FOR)
    end
    return redis.call('HMGET', keys[1], 'v', 's', 'e', 'k', 'p', 'x')
end

-- Gives out the next numbers, unless another memory is there; the reply is the last of them.
local function reserve(keys, argv)
    touch(string.sub(keys[1], 1, -2))
    if redis.call('HGET', keys[1], 'e') ~= argv[1] then
        return redis.error_reply('ANOTHER memory is there')
    end
    return redis.call('HINCRBY', keys[1], 'n', argv[2])
end

-- ---- arguments: sections, each with its count before it ----

local argv, at

local function take()
    at = at + 1
    return argv[at]
end

-- The first and last argument of the next section, of `width` for each.
local function section(width)
    local first = at + 2
    at = at + 1 + width * tonumber(argv[at + 1])
    return first, at
end

-- The number that 8 bytes begin with: strings are compared as the server's language sorts them.
local function number_of(bytes)
    if #bytes < 8 then
        return 0
    end
    local high, low = struct.unpack('>I4I4', bytes)
    return high * 4294967296 + low
end

-- ---- parts of a commit ----

-- Whether documents are there, or not, as was read.
local function exist(prefix)
    local first, last = section(2)
    for i = first, last, 2 do
        if redis.call('EXISTS', prefix .. 'd' .. argv[i]) ~= tonumber(argv[i + 1]) then
            return false
        end
    end
    return true
end

-- Whether documents that are removed have the copies and texts that were read: their lists have these lengths.
local function same_links(prefix)
    local first, last = section(2)
    for i = first, last, 2 do
        if #(redis.call('GET', prefix .. 'a' .. argv[i]) or '') ~= tonumber(argv[i + 1]) then
            return false
        end
    end
    return true
end

-- Drops a field, and the bucket when nothing is left in it but its time.
local function drop(key, field)
    redis.call('HDEL', key, field)
    if redis.call('HLEN', key) <= 1 then
        redis.call('DEL', key)
    end
end

local function expire(key, milliseconds)
    if milliseconds == '0' then
        redis.call('PERSIST', key)
    else
        redis.call('PEXPIRE', key, milliseconds)
    end
end

-- Drops the entries of a bucket that have expired. After a removal (`shortens`) the bucket expires with what is left in it,
-- where it would live longer by more than a 16th; processes that have read when it expires find that in the list `l`. The
-- letter of its key says how large its entries are and where the hours stand in them.
local function sweep(key, now, fingerprint, shortens)
    local letter = string.sub(key, -5, -5)
    local size = ({ b = 8, f = 8 + fingerprint, s = 21 })[letter]
    local offset = letter == 's' and 8 or 5
    local fields, hour, latest, goes = redis.call('HGETALL', key), math.floor(now / HOUR), 0, nil
    for i = 1, #fields, 2 do
        local field, value = fields[i], fields[i + 1]
        local kept = {}
        goes = field == 'x' and value or goes
        for from = 1, field ~= 'x' and #value - size + 1 or 0, size do
            local a, b, c = string.byte(value, from + offset, from + offset + 2)
            local hours = a * 65536 + b * 256 + c
            if hours >= hour then
                kept[#kept + 1] = string.sub(value, from, from + size - 1)
                latest = math.max(latest, hours)
            end
        end
        if field ~= 'x' and #kept == 0 then
            if shortens then
                drop(key, field)
            else
                redis.call('HDEL', key, field)
            end
        elseif field ~= 'x' and #kept * size < #value then
            redis.call('HSET', key, field, table.concat(kept))
        end
    end
    if not shortens then
        return
    end
    local seconds = latest * HOUR
    local lives = seconds - now + math.floor((seconds - now) / 16)
    if goes and latest > 0 and latest < NEVER and now + lives < struct.unpack('>I5', goes) then
        redis.call('HSET', key, 'x', struct.pack('>I5', now + lives))
        expire(key, lives * 1000)
    end
end

local function set(key, value, milliseconds)
    if milliseconds == '0' then
        redis.call('SET', key, value)
    else
        redis.call('SET', key, value, 'PX', milliseconds)
    end
end

-- When the last document and copy that is counted expires: 0 for never, nil when there is none.
local function latest_of(meta)
    local fields, latest = redis.call('HGETALL', meta), nil
    for i = 1, #fields, 2 do
        local letter, time = string.match(fields[i], '^([dc])(%d+)$')
        if letter and (tonumber(fields[i + 1]) or 0) > 0 and latest ~= 0 then
            time = tonumber(time)
            latest = time == 0 and 0 or math.max(latest or 0, time)
        end
    end
    return latest
end

-- Drops the counts of documents that have expired.
local function forget_counts(meta, now)
    local fields = redis.call('HGETALL', meta)
    for i = 1, #fields, 2 do
        local time = tonumber(string.match(fields[i], '^[dc](%d+)$') or '0')
        if time > 0 and time <= now then
            redis.call('HDEL', meta, fields[i])
        end
    end
end

-- After a removal the memory lives as long as what is left of it; false: nothing is.
local function shorten(meta, now)
    local latest = latest_of(meta)
    if not latest then
        redis.call('DEL', meta)
    elseif latest > now then
        redis.call('HSET', meta, 'x', string.format('%.0f', latest))
        redis.call('PEXPIRE', meta, string.format('%.0f', (latest - now) * 1000))
    end
    return latest
end

-- The values of places; where a bucket has to live longer, until when.
local function write_places()
    local call, argv = redis.call, argv
    local first, last = section(5)
    for i = first, last, 5 do
        local key, value, goes = argv[i], argv[i + 2], argv[i + 3]
        if value == '' then
            drop(key, argv[i + 1])
        elseif goes == '' then
            call('HSET', key, argv[i + 1], value)
        else
            call('HSET', key, argv[i + 1], value, 'x', goes)
            expire(key, argv[i + 4])
        end
    end
end

local function write(prefix, meta, now)
    write_places()
    local first, last = section(3)
    for i = first, last, 3 do
        set(prefix .. argv[i], argv[i + 1], argv[i + 2])
    end
    first, last = section(5)
    for i = first, last, 5 do
        local key = prefix .. 'c' .. argv[i]
        redis.call('HINCRBY', key, argv[i + 1], argv[i + 2])
        redis.call('HSET', key, 't', argv[i + 3])
        expire(key, argv[i + 4])
    end
    first, last = section(3)
    for i = first, last, 3 do
        local key = prefix .. 'a' .. argv[i]
        redis.call('APPEND', key, argv[i + 1])
        expire(key, argv[i + 2])
    end
    first, last = section(1)
    for i = first, last do
        redis.call('DEL', prefix .. 'd' .. argv[i], prefix .. 't' .. argv[i])
        redis.call('DEL', prefix .. 'c' .. argv[i], prefix .. 'a' .. argv[i])
    end
    first, last = section(2)
    for i = first, last, 2 do
        if redis.call('HINCRBY', meta, argv[i], argv[i + 1]) <= 0 then
            redis.call('HDEL', meta, argv[i])
        end
    end
    local fingerprint = tonumber(take())
    first, last = section(2)
    for i = first, last, 2 do
        sweep(argv[i], now, fingerprint, argv[i + 1] == '1')
    end
end

-- The numbers that were given reach at least this far, and the memory lives as long as its last document.
local function raise(meta, last, latest, milliseconds)
    local number = tonumber(redis.call('HGET', meta, 'n')) or 0
    if number < tonumber(last) then
        redis.call('HSET', meta, 'n', last)
    end
    local known = redis.call('HGET', meta, 'x')
    if latest ~= '' and known ~= '0' and (latest == '0' or (tonumber(known or '') or 0) < tonumber(latest)) then
        redis.call('HSET', meta, 'x', latest)
        expire(meta, milliseconds)
    end
end

-- ---- turns ----

-- Processes that commit at the same time take turns: `h` is the link whose turn it is. While one of them asks for turns (`w`),
-- every commit leaves in the list `l` its stamp and the places that it wrote.
local TURN, WATCHED, LOGGED = 1000, 10000, 64

-- The places that were written after the commit of this stamp; nil when that is not known.
local function written_since(prefix, stamp)
    local key, written = prefix .. 'l', {}
    for i = -2, -2 * LOGGED, -2 do
        local found = redis.call('LINDEX', key, i)
        if not found then
            return nil
        elseif found == stamp then
            return table.concat(written)
        end
        written[#written + 1] = redis.call('LINDEX', key, i + 1)
    end
    return nil
end

-- Asks for a turn: { 'wait' } when it is another's, { 'same' } when nothing was committed since, else { 'changed', stamp,
-- places } or, when nobody knows which, { 'unknown', stamp }.
local function enter(keys, arguments)
    local meta, epoch, link, stamp = keys[1], arguments[1], arguments[2], arguments[3]
    local prefix = string.sub(meta, 1, -2)
    touch(prefix)
    local there = redis.call('HMGET', meta, 'e', 'o')
    if there[1] ~= epoch then
        return redis.error_reply('ANOTHER memory is there')
    end
    redis.call('SET', prefix .. 'w', '', 'PX', WATCHED)
    local holder = redis.call('GET', prefix .. 'h')
    if holder and holder ~= link then
        if redis.call('PTTL', prefix .. 'h') < 0 then
            redis.call('PEXPIRE', prefix .. 'h', TURN)
        end
        return { 'wait' }
    end
    redis.call('SET', prefix .. 'h', link, 'PX', TURN)
    local now = there[2] or ''
    if now == stamp then
        return { 'same' }
    end
    local written = written_since(prefix, stamp)
    return written and { 'changed', now, written } or { 'unknown', now }
end

local function log(prefix, stamp, places)
    local key = prefix .. 'l'
    redis.call('RPUSH', key, stamp, places)
    redis.call('LTRIM', key, -2 * LOGGED, -1)
    redis.call('PEXPIRE', key, WATCHED)
end

-- Carries a commit out, once: { 'done' } or, when it emptied the memory, { 'emptied' }. { 'busy' }: others have committed
-- since what it rests on was read. { 'wait' }: it is another's turn. { 'gone' }: a document that it counts at is not there, a
-- number it would give is, or what it removes has other copies. { 'late' }: the same connection has had a later one carried
-- out; the sender has given this one up.
local function carry_out(meta)
    local prefix = string.sub(meta, 1, -2)
    local epoch, link, request, stamp, now = take(), take(), take(), take(), tonumber(take())
    local last, latest, lives, removes, answers_for, places = take(), take(), take(), take(), take(), take()
    touch(prefix)
    local answered = redis.call('GET', prefix .. 'r' .. link)
    if answered and string.sub(answered, 1, 8) == request then
        return { string.sub(answered, 9) }
    elseif answered and number_of(answered) > number_of(request) then
        return { 'late' }
    end
    local there = redis.call('HMGET', meta, 'e', 'o')
    if there[1] ~= epoch then
        return redis.error_reply('ANOTHER memory is there')
    end
    local holder = redis.call('GET', prefix .. 'h')
    if holder and holder ~= link then
        return { 'wait' }
    elseif (there[2] or '') ~= stamp then
        return { 'busy' }
    elseif not exist(prefix) or not same_links(prefix) then
        return { 'gone' }
    end
    if redis.call('EXISTS', prefix .. 'w') == 1 then
        log(prefix, link .. request, places)
    else
        redis.call('DEL', prefix .. 'l') -- a list without this commit would be wrong
    end
    write(prefix, meta, now)
    raise(meta, last, latest, lives)
    if number_of(request) % FORGET_EACH == 0 then
        forget_counts(meta, now)
    end
    if holder then
        redis.call('DEL', prefix .. 'h')
    end
    if removes == '1' and not shorten(meta, now) then
        redis.call('SET', prefix .. 'r' .. link, request .. 'emptied', 'PX', answers_for)
        return { 'emptied' }
    end
    redis.call('HSET', meta, 'o', link .. request)
    redis.call('SET', prefix .. 'r' .. link, request .. 'done', 'PX', answers_for)
    return { 'done' }
end

local function commit(keys, arguments)
    argv, at = arguments, 0
    local answer = carry_out(keys[1])
    argv = nil
    return answer
end

-- Sweeps the buckets of these keys.
local function sweep_all(keys, arguments)
    touch(string.sub(keys[1], 1, -2))
    if redis.call('HGET', keys[1], 'e') ~= arguments[1] then
        return redis.error_reply('ANOTHER memory is there')
    end
    forget_counts(keys[1], tonumber(arguments[2]))
    for i = 5, #arguments do
        sweep(arguments[i], tonumber(arguments[2]), tonumber(arguments[3]), true)
    end
    -- Processes that have read what was swept read it again.
    redis.call('HSET', keys[1], 'o', arguments[4])
    redis.call('DEL', string.sub(keys[1], 1, -2) .. 'l')
    return 'OK'
end

-- What removes, or counts, may do so when there is no memory left.
redis.register_function({ function_name = NAME .. '_make', callback = make })
redis.register_function({ function_name = NAME .. '_reserve', callback = reserve, flags = { 'allow-oom' } })
redis.register_function({ function_name = NAME .. '_enter', callback = enter, flags = { 'allow-oom' } })
redis.register_function({ function_name = NAME .. '_commit', callback = commit })
redis.register_function({ function_name = NAME .. '_remove', callback = commit, flags = { 'allow-oom' } })
redis.register_function({ function_name = NAME .. '_sweep', callback = sweep_all, flags = { 'allow-oom' } })
