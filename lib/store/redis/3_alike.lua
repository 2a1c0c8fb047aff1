-- How alike titles are, and the segments by which they are found: the arithmetic of redis_titles.c once more.

local MOST_SEGMENTS, SHORTEST = 57, 2
local FIRST_PRIME, SECOND_PRIME = 67108859, 67108837

-- ---- how alike ----

-- The code points of a text that is valid UTF-8. Most are ASCII, and so short that their bytes may stand on the stack.
local function points_of(text)
    local points, at = {}, 1
    if #text <= 1000 and not find(text, '[\128-\255]') then
        return { byte(text, 1, -1) }
    end
    while at <= #text do
        local a, b, d, e = byte(text, at, at + 3)
        if a < 128 then
            points[#points + 1], at = a, at + 1
        elseif a < 224 then
            points[#points + 1], at = (a - 192) * 64 + (b or 128) - 128, at + 2
        elseif a < 240 then
            points[#points + 1], at = (a - 224) * 4096 + ((b or 128) - 128) * 64 + (d or 128) - 128, at + 3
        else
            local low = ((d or 128) - 128) * 64 + (e or 128) - 128
            points[#points + 1], at = (a - 240) * 262144 + ((b or 128) - 128) * 4096 + low, at + 4
        end
    end
    return points
end

local function similarity_of(distance, length)
    return length > 0 and 1 - distance / length or 1
end

-- The largest distance that leaves texts similar enough; nil: even none does not.
local function allowed_edits(length, least)
    if similarity_of(0, length) < least then
        return nil
    end
    local allowed = math.min(floor((1 - least) * length), length)
    while allowed < length and similarity_of(allowed + 1, length) >= least do
        allowed = allowed + 1
    end
    while allowed > 0 and similarity_of(allowed, length) < least do
        allowed = allowed - 1
    end
    return allowed
end

-- The Levenshtein distance of two texts; nil: it is above `most`. Only cells within `most` of the diagonal count.
local function edits(a, b, most)
    local before, row, far = {}, {}, most + 1
    if math.abs(#a - #b) > most then
        return nil
    end
    for j = 0, math.min(#b, most) do
        before[j] = j
    end
    before[math.min(#b, most) + 1] = far
    for i = 1, #a do
        local from, to, x = math.max(1, i - most), math.min(#b, i + most), a[i]
        row[from - 1] = from == 1 and i or far
        local left, least = row[from - 1], row[from - 1]
        for j = from, to do
            local best = before[j - 1]
            if x ~= b[j] then
                local up = before[j]
                best = best < up and best or up
                best = (best < left and best or left) + 1
            end
            row[j], left = best, best
            least = best < least and best or least
        end
        row[to + 1] = far
        if least > most then
            return nil
        end
        before, row = row, before
    end
    return before[#b] <= most and before[#b] or nil
end

-- ---- segments ----

-- One segment more than the largest distance that a title of this length can have to one that is found; 0: there would
-- be too many, or too short ones, and all titles of the length are compared.
local function segment_count(length, least)
    local most, longer = 0, length
    while true do
        local allowed = allowed_edits(longer, least)
        if not allowed or longer - length > allowed then
            return most + 1
        end
        most = math.max(most, allowed)
        if most + 1 > MOST_SEGMENTS or (most + 1) * SHORTEST > length then
            return 0
        end
        longer = longer + 1
    end
end

-- The secret numbers of the hashes: two bases, two factors.
local function hash_numbers(memory)
    if not memory.numbers then
        local hash, numbers = redis.sha1hex(memory.seed .. 's'), {}
        for i = 1, 4 do
            numbers[i] = tonumber(sub(hash, 6 * i - 5, 6 * i), 16) + 1024
        end
        memory.numbers = numbers
    end
    return memory.numbers
end

-- The sizes that segments have; what is not cut is told apart by its length.
local SIZES, NOT_CUT = { 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64 }, 128

-- Where the segment of the code points from `first` to `last` is looked up.
local function segment_place(memory, points, start, first, last)
    local numbers = hash_numbers(memory)
    local a, b = start * numbers[3] % FIRST_PRIME, start * numbers[4] % SECOND_PRIME
    for i = first, last do
        a = (a * numbers[1] + points[i] + 1) % FIRST_PRIME
        b = (b * numbers[2] + points[i] + 1) % SECOND_PRIME
    end
    return pack('>I3I4', floor(a * 2 ^ memory.title_bits / FIRST_PRIME), b)
end

local function segment_places(c, title)
    local points, places, size = points_of(title), {}, SIZES[1]
    local count = segment_count(#points, c.memory.title_least)
    if count == 0 then
        return { segment_place(c.memory, points, (NOT_CUT + #points) * 64 + 1, 1, 0) }
    end
    for _, larger in ipairs(SIZES) do
        size = larger * count <= #points and larger or size
    end
    for i = 0, count - 1 do
        places[i + 1] = segment_place(c.memory, points, size * 64 + i + 1, i * size + 1, (i + 1) * size)
    end
    return places
end
