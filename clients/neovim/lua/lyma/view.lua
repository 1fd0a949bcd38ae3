local items = vim.api.nvim_create_namespace("lyma")
local statuses = vim.api.nvim_create_namespace("lyma.status")
local count = 0

---A transcript: a Markdown buffer that is written from its end, item by item.
---@class lyma.View
---@field buffer integer
---@field session? string
---@field client_id? integer
---@field request? integer the ask under way
---@field waiting? lyma.Source of the ask that waits for the server to start
---@field route? lyma.Route the attempt that answered
---@field completed? lyma.TurnCompleted
---@field marks table<string, integer> where each item is
---@field prefixes table<string, string> what stands before each line of an item
local View = {}
View.__index = View

local M = {}

---@return lyma.View
function M.new()
  local view = setmetatable({ marks = {}, prefixes = {} }, View)
  view:ensure()
  return view
end

---Make the buffer where there is none, or where it was wiped or unloaded.
function View:ensure()
  if self:is_alive() then return end
  count = count + 1
  self.buffer = vim.api.nvim_create_buf(true, true)
  self.marks, self.prefixes = {}, {}
  vim.api.nvim_buf_set_name(self.buffer, "lyma://" .. count)
  local options = vim.bo[self.buffer]
  options.bufhidden, options.undolevels, options.modifiable = "hide", -1, false
  options.filetype = "markdown"
  vim.b[self.buffer].lyma_transcript = true
  local function map(key, action, description)
    vim.keymap.set("n", key, action, { buffer = self.buffer, nowait = true, desc = description })
  end
  map("q", "<Cmd>close<CR>", "Close the transcript")
  map("<C-c>", "<Cmd>LymaStop<CR>", "Stop Lyma")
  map("<CR>", ":LymaAsk<CR>", "Ask on")
end

---@return boolean
function View:is_alive()
  return self.buffer ~= nil and vim.api.nvim_buf_is_valid(self.buffer) and vim.api.nvim_buf_is_loaded(self.buffer)
end

---Show the transcript in the current tab page; the cursor stays where it is.
function View:show()
  self:ensure()
  local window
  for _, each in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local shown = vim.api.nvim_win_get_buf(each)
    if shown == self.buffer then return end
    window = vim.b[shown].lyma_transcript and each or window
  end
  local split = vim.g.lyma_split or (vim.o.columns >= 120 and "right" or "below")
  window = window or vim.api.nvim_open_win(self.buffer, false, { split = split, win = -1 })
  vim.api.nvim_win_set_buf(window, self.buffer)
  local options = vim.wo[window][0]
  options.wrap, options.linebreak, options.number, options.relativenumber = true, true, false, false
  options.signcolumn, options.foldenable, options.spell = "no", false, false
  options.conceallevel, options.concealcursor = 2, "nc"
  vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(self.buffer), 0 })
end

---Change the text by `change`; windows whose cursor is on the last line follow it.
---@param change fun(buffer: integer)
function View:write(change)
  if not self:is_alive() then return end
  local last = vim.api.nvim_buf_line_count(self.buffer)
  local following = vim.tbl_filter(
    function(window) return vim.api.nvim_win_get_cursor(window)[1] >= last end,
    vim.fn.win_findbuf(self.buffer)
  )
  vim.bo[self.buffer].modifiable = true
  change(self.buffer)
  vim.bo[self.buffer].modifiable, vim.bo[self.buffer].modified = false, false
  last = vim.api.nvim_buf_line_count(self.buffer)
  for _, window in ipairs(following) do
    vim.api.nvim_win_set_cursor(window, { last, 0 })
  end
end

---@param text string
---@param prefix? string
---@return string[]
local function split(text, prefix) return vim.split((prefix or "") .. text:gsub("\n", "\n" .. (prefix or "")), "\n") end

---Add a block at the end, an empty line before it. With `item`, it can be extended and replaced.
---@param text string
---@param item? string
---@param prefix? string what stands before each line
function View:append(text, item, prefix)
  local lines = split(text, prefix)
  self:write(function(buffer)
    local first = vim.api.nvim_buf_line_count(buffer)
    if first == 1 and vim.api.nvim_buf_get_lines(buffer, 0, 1, false)[1] == "" then
      first = 0
      vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
    else
      first = first + 1
      vim.api.nvim_buf_set_lines(buffer, -1, -1, false, vim.list_extend({ "" }, lines))
    end
    if item then
      local range = { end_row = first + #lines - 1, end_col = #lines[#lines] }
      local gravity = { right_gravity = false, end_right_gravity = true }
      self.prefixes[item] = prefix or ""
      self.marks[item] = vim.api.nvim_buf_set_extmark(buffer, items, first, 0, vim.tbl_extend("error", range, gravity))
    end
  end)
end

---@param item string
---@return integer[]? place start row and column, end row and column
function View:place(item)
  if not self.marks[item] or not self:is_alive() then return nil end
  local mark = vim.api.nvim_buf_get_extmark_by_id(self.buffer, items, self.marks[item], { details = true })
  return mark[3] and { mark[1], mark[2], mark[3].end_row, mark[3].end_col }
end

---Add to an item.
---@param item string
---@param text string
function View:extend(item, text)
  local place = self:place(item)
  if place then
    local lines = vim.split(text:gsub("\n", "\n" .. self.prefixes[item]), "\n")
    self:write(function(buffer) vim.api.nvim_buf_set_text(buffer, place[3], place[4], place[3], place[4], lines) end)
  end
end

---Put another text in an item's place, or append it where there is none yet.
---@param item string
---@param text string
---@param prefix? string
function View:replace(item, text, prefix)
  local place = self:place(item)
  if not place then return self:append(text, item, prefix) end
  local lines = split(text, prefix)
  if not vim.deep_equal(vim.api.nvim_buf_get_text(self.buffer, place[1], place[2], place[3], place[4], {}), lines) then
    self:write(function(buffer) vim.api.nvim_buf_set_text(buffer, place[1], place[2], place[3], place[4], lines) end)
  end
end

---Begin a turn: its prompt as a heading.
---@param prompt string
function View:head(prompt)
  local first, rest = prompt:match("^%s*([^\n]*)\n?(.*)$")
  self:append("## " .. first)
  if self:is_alive() then
    vim.api.nvim_buf_set_extmark(self.buffer, statuses, vim.api.nvim_buf_line_count(self.buffer) - 1, 0, { id = 1 })
  end
  if rest:match("%S") then self:append(rest, nil, "> ") end
end

---Show a few words at the right of the last heading.
---@param text? string
function View:mark(text)
  local place = self:is_alive() and vim.api.nvim_buf_get_extmark_by_id(self.buffer, statuses, 1, {}) or {}
  if place[1] then
    local options = { id = 1, virt_text = { { text or "", "Comment" } }, virt_text_pos = "eol_right_align" }
    vim.api.nvim_buf_set_extmark(self.buffer, statuses, place[1], 0, options)
  end
end

return M
