;;; lyma.el --- Ask Lyma through eglot or lsp-mode -*- lexical-binding: t -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience

;;; Commentary:

;; Lyma is a coding agent behind the editor.  This file shows and asks; all
;; else is done by `lyma-server', which must be on the path of programs.
;; With eglot, Lyma is the server of the modes that `lyma-eglot-modes' names;
;; with lsp-mode, it works beside other servers.  See docs/editors.md.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'url-util)

(declare-function eglot-current-server "eglot")
(declare-function eglot--signal-textDocument/didChange "eglot")
(declare-function jsonrpc-async-request "jsonrpc")
(declare-function jsonrpc-notify "jsonrpc")
(declare-function lsp-workspaces "lsp-mode")
(declare-function lsp--workspace-client "lsp-mode")
(declare-function lsp--client-server-id "lsp-mode")
(declare-function lsp-request-async "lsp-mode")
(declare-function lsp-notify "lsp-mode")
(defvar eglot-server-programs)
(defvar eglot-confirm-server-initiated-edits)
(defvar lsp--cur-workspace)

(defgroup lyma nil "A coding agent behind the editor." :group 'tools)

(defcustom lyma-command '("lyma-server")
  "The program that is the server, and its arguments."
  :type '(repeat string))

(defcustom lyma-eglot-modes '(prog-mode text-mode)
  "Modes whose server Lyma is with eglot, where no other is known.
In a mode that has a server already, eglot keeps that one."
  :type '(repeat symbol))

(defvar lyma--source nil "The buffer that was asked from last; the transcript asks on through it.")
(defvar lyma--session nil "The session that the next ask goes on with.")
(defvar lyma--running nil "What is under way: conses of a token and a function that stops it.")
(defvar lyma--items (make-hash-table :test 'equal) "Start and end of each item in the transcript.")

(defun lyma--options ()
  "What Lyma is told of this editor."
  (let ((yes (make-hash-table)))
    `(:lyma (:protocolVersion 1 :events ,yes :approvals ,yes))))

(defun lyma--get (object &rest keys)
  "In OBJECT, a plist or a hash table, follow KEYS."
  (dolist (key keys object)
    (setq object (if (hash-table-p object)
                     (gethash (substring (symbol-name key) 1) object)
                   (plist-get object key)))))

;;; The transcript

(defun lyma--transcript ()
  "The buffer that shows what is asked and answered."
  (or (get-buffer "*lyma*")
      (with-current-buffer (get-buffer-create "*lyma*")
        (if (fboundp 'markdown-mode) (markdown-mode) (text-mode))
        (setq buffer-undo-list t)
        (read-only-mode 1)
        (current-buffer))))

(defun lyma--insert (text &optional item replace)
  "Add TEXT at the end of ITEM, or as a new paragraph which ITEM names.
With REPLACE, it takes the place of all that ITEM shows."
  (with-current-buffer (lyma--transcript)
    (let* ((inhibit-read-only t)
           (place (and item (gethash item lyma--items)))
           (at-end (lambda (window) (= (window-point window) (point-max))))
           (following (cl-remove-if-not at-end (get-buffer-window-list nil nil t))))
      (save-excursion
        (goto-char (if place (cdr place) (point-max)))
        (when (and place replace) (delete-region (car place) (cdr place)))
        (unless (or place (bobp)) (insert "\n\n"))
        (let ((start (if place (marker-position (car place)) (point))))
          (insert-before-markers text)
          (when item (puthash item (cons (copy-marker start) (copy-marker (point))) lyma--items))))
      (dolist (window following)
        (set-window-point window (point-max))))))

(defun lyma--describe (item)
  "Words for ITEM when it is complete; nil where there is nothing to show."
  (pcase (lyma--get item :kind)
    ("tool_call" (format "▸ %s" (lyma--get item :name)))
    ("tool_result" (and (eq (lyma--get item :isError) t) (format "✗ %s" (lyma--get item :text))))
    ("edit" (format "▸ %s %s\n\n%s" (if (eq (lyma--get item :applied) t) "edited" "not edited")
                    (lyma--get item :path) (lyma--get item :diff)))
    ("command_output" (format "$ %s\n%s" (lyma--get item :command) (lyma--get item :text)))
    ("run" (format "▸ agent %s: %s" (lyma--get item :name) (lyma--get item :status)))))

(defun lyma--hear (event)
  "Show EVENT; types that are not known are ignored."
  (pcase (lyma--get event :type)
    ("turn.started" (setq lyma--session (lyma--get event :session)))
    ("item.started"
     (when (equal (lyma--get event :item :kind) "text")
       (lyma--insert (lyma--get event :item :text) (lyma--get event :item :id))))
    ("item.delta"
     (when (gethash (lyma--get event :item) lyma--items)
       (lyma--insert (lyma--get event :text) (lyma--get event :item))))
    ("item.completed"
     (let ((item (lyma--get event :item)))
       (if (equal (lyma--get item :kind) "text")
           (lyma--insert (lyma--get item :text) (lyma--get item :id) t)
         (when-let ((text (lyma--describe item))) (lyma--insert text)))))
    ("item.discarded"
     (lyma--insert (format " (broke off and is asked again: %s)" (lyma--get event :reason)) (lyma--get event :item)))
    ("route"
     (unless (member (lyma--get event :class) '("ok" "cancelled"))
       (lyma--insert (format "(%s: %s, %s)" (lyma--get event :provider)
                             (lyma--get event :class) (lyma--get event :next)))))
    ("notice" (lyma--insert (lyma--get event :text)))
    ("approval.resolved" (lyma--insert (format "▸ %s %s" (lyma--get event :state) (lyma--get event :hash))))))

;;; Approvals

(defun lyma--answer (request)
  "Show the agent of REQUEST and ask about it; nil where nobody answers."
  (let ((buffer (get-buffer-create "*lyma approval*"))
        (title (lyma--get request :title))
        (use-short-answers nil)
        (enable-recursive-minibuffers t))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (lyma--get request :text))
        (goto-char (point-min)))
      (special-mode))
    (save-window-excursion
      (display-buffer buffer)
      (condition-case nil
          (list :hash (lyma--get request :hash) :nonce (lyma--get request :nonce)
                :approved (if (yes-or-no-p (concat title " ")) t :json-false))
        (quit nil)))))

;;; Requests, through whichever client manages the buffer

(defun lyma--eglot ()
  "The eglot server of this buffer, if it is Lyma."
  (when-let ((server (and (featurep 'eglot) (eglot-current-server))))
    (and (eq (type-of server) 'lyma-eglot-server) server)))

(defun lyma--workspace ()
  "The workspace of lsp-mode in this buffer that is Lyma's."
  (and (featurep 'lsp-mode)
       (cl-find 'lyma-server (lsp-workspaces)
                :key (lambda (each) (lsp--client-server-id (lsp--workspace-client each))))))

(defun lyma--place ()
  "The buffer to ask from: this one, or in the transcript the one asked from last."
  (let ((place (if (and (equal (buffer-name) "*lyma*") (buffer-live-p lyma--source)) lyma--source (current-buffer))))
    (with-current-buffer place
      (unless (or (lyma--eglot) (lyma--workspace))
        (user-error "Lyma is not running for this buffer; start it with M-x eglot or M-x lsp")))
    (setq lyma--source place)))

(defun lyma--request (method params on-result)
  "Send METHOD with PARAMS, and hand its result to ON-RESULT; an error is shown.
Return a function that sends a notification to the same server."
  (let ((fail (lambda (problem) (lyma--insert (lyma--get problem :message)) (funcall on-result nil))))
    (if-let ((server (lyma--eglot)))
        (progn
          (eglot--signal-textDocument/didChange)
          (jsonrpc-async-request server (intern (concat ":" method)) params :timeout nil
                                 :success-fn on-result :error-fn fail)
          (lambda (name with) (jsonrpc-notify server (intern (concat ":" name)) with)))
      (let ((lsp--cur-workspace (lyma--workspace)))
        (lsp-request-async method params on-result :error-handler fail :mode 'detached)
        (let ((workspace lsp--cur-workspace))
          (lambda (name with) (let ((lsp--cur-workspace workspace)) (lsp-notify name with))))))))

(defun lyma--context ()
  "This buffer's file and what is selected in it, by whole lines."
  (let* ((start (if (use-region-p) (region-beginning) (point)))
         (first (1- (line-number-at-pos start t)))
         (last (if (use-region-p)
                   (save-excursion
                     (goto-char (region-end))
                     (- (line-number-at-pos nil t) (if (bolp) 1 0)))
                 first))
         (path (and buffer-file-name (url-hexify-string (file-truename buffer-file-name) url-path-allowed-chars))))
    (when path
      `(:active (:uri ,(concat "file://" path)
                 :selections [(:start (:line ,first :character 0) :end (:line ,last :character 0))])))))

;;;###autoload
(defun lyma-ask (prompt &optional new)
  "Ask PROMPT; the answer streams into the buffer *lyma*, which asks on as well.
With a prefix argument, or NEW, a new session begins."
  (interactive (progn (lyma--place) (list (read-string "Ask Lyma: ") current-prefix-arg)))
  (with-current-buffer (lyma--place)
    (let* ((token (format "lyma-%s-%s" (emacs-pid) (float-time)))
           (session (and (not new) lyma--session))
           (context (lyma--context))
           (done (lambda (result)
                   (setq lyma--running (assoc-delete-all token lyma--running))
                   (when result (lyma--insert (format "(%s)" (lyma--get result :stopReason)))))))
      (unless lyma--running (clrhash lyma--items))
      (lyma--insert (concat "## " prompt))
      (let ((notify (lyma--request "lyma/ask" `(:prompt ,prompt :workDoneToken ,token
                                                ,@(and session (list :session session))
                                                ,@(and context (list :context context)))
                                   done)))
        (push (cons token (lambda () (funcall notify "window/workDoneProgress/cancel" `(:token ,token)))) lyma--running))
      (display-buffer (lyma--transcript)))))

;;;###autoload
(defun lyma-stop ()
  "Stop all that is under way."
  (interactive)
  (dolist (each lyma--running) (funcall (cdr each))))

;;;###autoload
(defun lyma-approve (hash)
  "Look at the compiled agent with HASH and decide whether it may run."
  (interactive "sHash: ")
  (with-current-buffer (lyma--place)
    (lyma--request "lyma/approve" `(:action "approve" :hash ,hash)
                   (lambda (result) (message "Lyma: %s" (or (lyma--get result :state) "unanswered"))))))

;;; The two clients

(with-eval-after-load 'eglot
  (eval
   '(progn
      (defclass lyma-eglot-server (eglot-lsp-server) () :documentation "Lyma, as eglot's server.")
      (cl-defmethod eglot-initialization-options ((_ lyma-eglot-server)) (lyma--options))
      (cl-defmethod eglot-handle-notification ((_ lyma-eglot-server) (_method (eql 'lyma/event)) &rest event)
        (lyma--hear event))
      (cl-defmethod eglot-handle-request ((_ lyma-eglot-server) (_method (eql 'lyma/requestApproval)) &rest request)
        (lyma--answer request))
      (cl-defmethod eglot-handle-request ((_ lyma-eglot-server) (_method (eql 'workspace/applyEdit)) &rest _)
        (let ((eglot-confirm-server-initiated-edits nil)) (cl-call-next-method)))
      (add-to-list 'eglot-server-programs `(,lyma-eglot-modes . (lyma-eglot-server . ,lyma-command)) t))
   t))

(with-eval-after-load 'lsp-mode
  (eval
   '(lsp-register-client
     (make-lsp-client
      :new-connection (lsp-stdio-connection (lambda () lyma-command))
      :activation-fn (lambda (&rest _) t)
      :server-id 'lyma-server :add-on? t :priority -1
      :initialization-options #'lyma--options
      :notification-handlers (lsp-ht ("lyma/event" (lambda (_ event) (lyma--hear event))))
      :request-handlers (lsp-ht ("lyma/requestApproval" (lambda (_ request) (lyma--answer request))))))
   t))

(provide 'lyma)
;;; lyma.el ends here
