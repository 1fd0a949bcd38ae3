local M = {}

---@param text string
---@param most integer
---@return string
local function shorten(text, most)
  local line = vim.split(text, "\n")[1]
  return vim.fn.strchars(line) > most and vim.fn.strcharpart(line, 0, most) .. "…" or line
end

---@param text string
---@param least integer
---@return string ticks that nothing in the text can close
local function ticks(text, least)
  local longest = 0
  for run in text:gmatch("`+") do
    longest = math.max(longest, #run)
  end
  return ("`"):rep(math.max(least, longest + 1))
end

---@param text string
---@param language string
---@return string block
local function fence(text, language)
  local mark = ticks(text, 3)
  return mark .. language .. "\n" .. text:gsub("\n$", "") .. "\n" .. mark
end

---What is long or nested is seen in what comes of the call.
---@param call lyma.ToolCallItem
---@return string
local function tool_call(call)
  local words = {}
  for name, value in vim.spairs(call.arguments or {}) do
    if type(value) ~= "table" then words[#words + 1] = name .. "=" .. tostring(value) end
  end
  local text = shorten(table.concat(words, " "), 100)
  local mark = ticks(text, 1)
  return ("▸ **%s**"):format(call.name) .. (text ~= "" and (" %s%s%s"):format(mark, text, mark) or "")
end

---Text of an item and what stands before each of its lines; no text where there is nothing to show.
---@type table<string, fun(item: any): string?, string?>
local kinds = {
  text = function(item) return item.text end,
  thinking = function(item) return item.text, "> " end,
  tool_call = tool_call,
  tool_result = function(item) return item.isError and "✗ " .. shorten(item.text, 200) or nil end,
  command_output = function(item)
    local ended = item.exitStatus and item.exitStatus ~= 0 and ("\n(exit status %d)"):format(item.exitStatus) or ""
    return ("$ %s\n%s%s"):format(item.command, item.text:gsub("\n$", ""), ended), "    "
  end,
  edit = function(item)
    return ("▸ **%s** %s\n\n%s"):format(
      item.applied and "edited" or "not edited",
      item.path,
      fence(item.diff, "diff")
    )
  end,
  run = function(item)
    local path = table.concat(item.path or {}, " › ")
    local asker = path ~= "" and " for " .. path or ""
    return vim.trim(("▸ **agent %s**%s %s\n%s"):format(item.name, asker, item.status or "running", item.text or ""))
  end,
}

---@param item lyma.Item
---@return string? text
---@return string? prefix
function M.item(item)
  local render = kinds[item.kind]
  if render then return render(item) end
end

---@param attempt lyma.Route
---@return string? text nothing where all is well
function M.route(attempt)
  if attempt.class == "ok" or attempt.class == "cancelled" then return nil end
  local key = attempt.key and " key " .. attempt.key or ""
  local status = attempt.status and (" (%d)"):format(attempt.status) or ""
  return ("*%s%s: %s%s, %s*"):format(attempt.provider, key, attempt.class, status, attempt.next)
end

---@param micros? integer USD micros
---@return string? money nothing where a price is unknown
function M.money(micros) return type(micros) == "number" and ("$%.4f"):format(micros / 1e6) or nil end

---@param event lyma.TurnCompleted
---@param route? lyma.Route the attempt that answered
---@return string
function M.ending(event, route)
  local reasons = { end_turn = "done", max_tokens = "cut short", max_steps = "out of steps", budget = "out of budget" }
  local usage = event.usage
  local words = {
    reasons[event.stopReason] or event.stopReason,
    ("%d in, %d out"):format(usage.inputTokens, usage.outputTokens),
  }
  words[#words + 1] = M.money(usage.costMicros)
  if route then words[#words + 1] = route.provider .. " " .. route.model end
  return "*" .. table.concat(words, " · ") .. "*"
end

---@param event lyma.TurnStarted
---@return string? text
function M.sent(event)
  local parts = {}
  for _, part in ipairs(event.sent or {}) do
    if part.what ~= "prompt" and part.what ~= "editor" then
      local name = part.uri and " of " .. vim.fs.basename(vim.uri_to_fname(part.uri)) or ""
      parts[#parts + 1] = ("%s%s (%d characters)"):format(part.what, name, part.characters)
    end
  end
  return #parts > 0 and "*with " .. table.concat(parts, ", ") .. "*" or nil
end

return M
