-- functions.lua - what runs inside Redis: a memory is made, and a commit is carried out if what it rests on still holds.
-- Nothing is searched or compared here but bytes that were read with bytes that are there. The build puts a line before
-- this text that defines NAME, the name of the library. docs/FORMAT.md section 14 has the keys and values.

local HOUR = 3600
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
        redis.call('HSET', keys[1], 'n', '0', unpack(argv))
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

-- ---- arguments, one after the other ----

local argv, at

local function take()
    at = at + 1
    return argv[at]
end

-- Calls `one` with `width` arguments as often as the next argument says; 0: they are passed over.
local function each(width, one)
    local count = tonumber(take())
    for _ = 1, count do
        one(unpack(argv, at + 1, at + width))
        at = at + width
    end
end

local function skip(width)
    at = at + 1 + width * tonumber(argv[at + 1])
end

-- The number that 8 bytes begin with: strings are compared as the server's language sorts them.
local function number_of(bytes)
    local high, low = struct.unpack('>I4I4', bytes)
    return high * 4294967296 + low
end

-- ---- parts of a commit ----

-- What was read of places, and is not there any more: the position of each and what is there now.
local function compare(prefix, changed)
    local position = 0
    each(3, function(bucket, field, expected)
        local found = redis.call('HGET', prefix .. 'b' .. bucket, field) or ''
        if found ~= expected then
            changed[#changed + 1] = position
            changed[#changed + 1] = found
        end
        position = position + 1
    end)
end

-- Drops a field, and the bucket when nothing is left in it but its time.
local function drop(key, field)
    redis.call('HDEL', key, field)
    if redis.call('HLEN', key) <= 1 then
        redis.call('DEL', key)
    end
end

-- Drops the entries of a bucket that have expired. The lowest two bits of a field say how large its entries are and
-- where the time stands in them.
local function sweep(key, now, fingerprint)
    local hours = math.floor(now / HOUR)
    local sizes, times = { [0] = 8, 8 + fingerprint, 21 }, { [0] = 6, 6, 9 }
    local fields = redis.call('HGETALL', key)
    for i = 1, #fields, 2 do
        local field, value = fields[i], fields[i + 1]
        local class = #field == 4 and string.byte(field, 4) % 4
        local size, kept = sizes[class], {}
        for from = 1, size and #value - size + 1 or 0, size or 1 do
            local time = from + times[class] - 1
            local a, b, c = string.byte(value, time, time + 2)
            if a * 65536 + b * 256 + c >= hours then
                kept[#kept + 1] = string.sub(value, from, from + size - 1)
            end
        end
        if size and #kept == 0 then
            drop(key, field)
        elseif size and #kept * size < #value then
            redis.call('HSET', key, field, table.concat(kept))
        end
    end
end

local function expire(key, milliseconds)
    if milliseconds == '0' then
        redis.call('PERSIST', key)
    else
        redis.call('PEXPIRE', key, milliseconds)
    end
end

local function set(key, value, milliseconds)
    if milliseconds == '0' then
        redis.call('SET', key, value)
    else
        redis.call('SET', key, value, 'PX', milliseconds)
    end
end

-- Whether no document and no copy is counted any more.
local function is_empty(meta)
    local fields = redis.call('HGETALL', meta)
    for i = 1, #fields, 2 do
        local letter = string.sub(fields[i], 1, 1)
        if (letter == 'd' or letter == 'c') and #fields[i] > 1 and tonumber(fields[i + 1]) > 0 then
            return false
        end
    end
    return true
end

local function write(prefix, meta, now)
    each(3, function(bucket, field, value)
        if value == '' then
            drop(prefix .. 'b' .. bucket, field)
        else
            redis.call('HSET', prefix .. 'b' .. bucket, field, value)
        end
    end)
    each(3, function(bucket, goes, milliseconds)
        local key = prefix .. 'b' .. bucket
        if redis.call('EXISTS', key) == 1 then
            redis.call('HSET', key, 'x', goes)
            expire(key, milliseconds)
        end
    end)
    each(3, function(name, value, milliseconds)
        set(prefix .. name, value, milliseconds)
    end)
    each(5, function(number, reason, times, last, milliseconds)
        local key = prefix .. 'c' .. number
        redis.call('HINCRBY', key, reason, times)
        redis.call('HSET', key, 't', last)
        expire(key, milliseconds)
    end)
    each(3, function(number, copies, milliseconds)
        redis.call('APPEND', prefix .. 'a' .. number, copies)
        expire(prefix .. 'a' .. number, milliseconds)
    end)
    each(1, function(number)
        redis.call('DEL', prefix .. 'd' .. number, prefix .. 't' .. number)
        redis.call('DEL', prefix .. 'c' .. number, prefix .. 'a' .. number)
    end)
    each(2, function(field, change)
        if redis.call('HINCRBY', meta, field, change) <= 0 then
            redis.call('HDEL', meta, field)
        end
    end)
    local fingerprint = tonumber(take())
    each(1, function(bucket)
        sweep(prefix .. 'b' .. bucket, now, fingerprint)
    end)
end

-- The numbers that were given reach at least this far, and the memory lives as long as its last document.
local function raise(meta, last, latest, milliseconds)
    local number = tonumber(redis.call('HGET', meta, 'n')) or 0
    if number < tonumber(last) then
        redis.call('HSET', meta, 'n', last)
    end
    local known = redis.call('HGET', meta, 'x')
    if latest ~= '' and known ~= '0' and (latest == '0' or not known or tonumber(known) < tonumber(latest)) then
        redis.call('HSET', meta, 'x', latest)
        expire(meta, milliseconds)
    end
end

-- Carries a commit out, once: { 'done' } or, when it emptied the memory, { 'emptied' }. { 'busy' }: others have committed
-- since, so it has to say what it rests on. { 'lost', stamp, position, value, ... }: that has changed. { 'wait' }: another
-- one has reserved the memory. { 'gone' }: a document that it counts at is not there, or a number it would give is.
-- { 'late' }: the same connection has had a later one carried out; the sender has given this one up.
local function carry_out(meta)
    local prefix = string.sub(meta, 1, -2)
    local epoch, link, request, stamp, now = take(), take(), take(), take(), tonumber(take())
    local last, latest, lives, removes, answers_for = take(), take(), take(), take(), take()
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
    end
    if stamp ~= '' then
        if (there[2] or '') ~= stamp then
            return { 'busy' }
        end
        skip(3)
        skip(2)
    else
        local changed = { 'lost', there[2] or '' }
        compare(prefix, changed)
        if #changed > 2 then
            return changed
        end
        local gone = false
        each(2, function(number, expected)
            gone = gone or redis.call('EXISTS', prefix .. 'd' .. number) ~= tonumber(expected)
        end)
        if gone then
            return { 'gone' }
        end
    end
    write(prefix, meta, now)
    raise(meta, last, latest, lives)
    if holder then
        redis.call('DEL', prefix .. 'h')
    end
    if removes == '1' and is_empty(meta) then
        redis.call('DEL', meta)
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
    for i = 4, #arguments do
        sweep(arguments[i], tonumber(arguments[2]), tonumber(arguments[3]))
    end
    return 'OK'
end

-- What removes, or counts, may do so when there is no memory left.
redis.register_function({ function_name = NAME .. '_make', callback = make })
redis.register_function({ function_name = NAME .. '_reserve', callback = reserve })
redis.register_function({ function_name = NAME .. '_commit', callback = commit })
redis.register_function({ function_name = NAME .. '_remove', callback = commit, flags = { 'allow-oom' } })
redis.register_function({ function_name = NAME .. '_sweep', callback = sweep_all, flags = { 'allow-oom' } })
