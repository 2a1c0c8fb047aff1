-- Load for wrk: each thread sends the lines of a file as bodies, from a place of its own on, again and again.
--   wrk ... -s bench/serve.lua URL -- PATH FILE
local count = 0
function setup(thread)
    thread:set("number", count)
    count = count + 1
end

function init(arguments)
    lines = {}
    for line in io.lines(arguments[2]) do
        lines[#lines + 1] = wrk.format("POST", arguments[1], {["Content-Type"] = "application/json"}, line)
    end
    at = math.floor(#lines / 7) * number
end

function request()
    at = at % #lines + 1
    return lines[at]
end

function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format("figures %f %f %f %d\n", summary.requests / summary.duration * 1e6,
        latency:percentile(50) / 1000, latency:percentile(99) / 1000,
        errors.connect + errors.read + errors.write + errors.timeout + errors.status))
end
