local M = {}

local READ, REJECT, APPROVE = "Read it first", "Reject", "Approve"

---@class lyma.Question an approval that waits for the person
---@field request lyma.RequestApprovalParams
---@field buffer integer shows what would be approved
---@field turn? string the turn that it belongs to
---@field settle fun(approved?: boolean) called once, with nothing where nobody answered

---@type lyma.Question[] several may be about one agent
local open = {}

---@type lyma.Event[] turns that have a question, before it comes
local announced = {}

---@generic T
---@param list T[]
---@param fits fun(each: T): boolean
---@return T? taken the first that fits
local function take(list, fits)
  for index, each in ipairs(list) do
    if fits(each) then return table.remove(list, index) end
  end
end

---@param hash string
---@return string
local function short(hash) return hash:match("^[^:]*:?") .. hash:gsub("^[^:]*:", ""):sub(1, 12) end

---@param request lyma.RequestApprovalParams
---@return integer buffer
local function show(request)
  local heading = #(request.path or {}) > 0 and { "asked by " .. table.concat(request.path, " › "), "" } or {}
  local lines = vim.list_extend(heading, { request.text })
  local buffer, window = require("lyma.house").show(lines, nil, { split = "above", win = -1 })
  vim.api.nvim_buf_set_name(buffer, ("lyma://approval/%d"):format(buffer))
  local options = vim.wo[window][0]
  options.winbar = request.title:gsub("%%", "%%%%")
  options.wrap, options.linebreak, options.number, options.relativenumber = true, true, false, false
  return buffer
end

---@param question lyma.Question
local function ask(question)
  local options = { prompt = question.request.title, kind = "lyma.approval" }
  vim.cmd.redraw()
  vim.ui.select({ READ, REJECT, ("%s %s"):format(APPROVE, short(question.request.hash)) }, options, function(_, index)
    if index == 1 then
      return require("lyma").notify(
        "<CR> in this window, or :LymaApprove, asks again; closing it leaves it unanswered."
      )
    end
    question.settle(({ [2] = false, [3] = true })[index])
  end)
end

---Begin once the person is not in the middle of typing, so that no key meant for the text answers.
---@param go_on fun()
local function when_idle(go_on)
  if not vim.fn.mode():match("^[icRst]") then return go_on() end
  require("lyma").notify("an agent waits for your approval; leave the mode you are in to see it.")
  vim.api.nvim_create_autocmd("ModeChanged", { pattern = "*:n*", once = true, callback = vim.schedule_wrap(go_on) })
end

---The server asks for an approval. Runs in a coroutine, and waits for the person.
---@async
---@param request lyma.RequestApprovalParams
---@return lyma.RequestApprovalResult|vim.NIL nothing where nobody answered
function M.answer(request)
  local waiting = coroutine.running()
  local approved, is_settled
  local announcement = take(announced, function(event) return event.hash == request.hash end)
  local question = { request = request, buffer = -1, turn = announcement and announcement.turn }
  question.settle = function(answer)
    if is_settled then return end
    is_settled, approved = true, answer
    take(open, function(each) return each == question end)
    if vim.api.nvim_buf_is_valid(question.buffer) then vim.api.nvim_buf_delete(question.buffer, { force = true }) end
    if coroutine.status(waiting) == "suspended" then coroutine.resume(waiting) end
  end
  table.insert(open, question)
  when_idle(function()
    if is_settled then return end
    question.buffer = show(request)
    vim.keymap.set("n", "<CR>", function() ask(question) end, { buffer = question.buffer })
    vim.api.nvim_create_autocmd("BufWipeout", {
      buffer = question.buffer,
      once = true,
      callback = vim.schedule_wrap(function() question.settle(nil) end),
    })
    ask(question)
  end)
  if not is_settled then coroutine.yield() end
  if approved == nil then return vim.NIL end
  return { hash = request.hash, nonce = request.nonce, approved = approved }
end

---A question is about to come.
---@param event lyma.ApprovalRequested
function M.expect(event) table.insert(announced, event) end

---The question of this turn needs no answer any longer.
---@param event lyma.ApprovalResolved
function M.settle(event)
  local function fits(each) return (each.request or each).hash == event.hash and each.turn == event.turn end
  take(announced, fits)
  local question = take(open, fits)
  if question then question.settle(nil) end
end

---Ask again what is open; with `hash`, only about that one.
---@param hash? string
---@return boolean whether anything was
function M.ask_again(hash)
  for _, question in ipairs(open) do
    if not hash or hash == "" or question.request.hash == hash then
      ask(question)
      return true
    end
  end
  return false
end

return M
