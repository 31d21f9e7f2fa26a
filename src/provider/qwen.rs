//! Qwen Code.

use super::Provider;
use super::ids::Shape;
use super::meaning::as_claude;
use super::signs::{Phase, Table};
use super::spec::{ID, Launch, Look, Naming, OPTIONS, Spec, list, switch, value};
use super::store::{Layout, Root, Store};

pub(super) const SPEC: Spec = Spec {
    provider: Provider::Qwen,
    name: "qwen",
    binaries: &["qwen"],
    packages: &["@qwen-code/qwen-code"],
    modules: &[],
    tools: &["mcp", "extensions", "hooks", "skills", "auth"],
    once: &["-p", "--prompt"],
    ids: Shape::Uuid,
    naming: Naming { flags: &["--session-id", "--resume", "-r"], word: None, forks: &[] },
    launch: Launch { plain: &["qwen", OPTIONS], chosen: &["qwen", "--session-id", ID, OPTIONS] },
    resume: &["qwen", "--resume", ID, OPTIONS],
    kept: &[
        value(&["--model", "-m"]),
        value(&["--approval-mode"]),
        switch(&["--yolo", "-y"]),
        switch(&["--sandbox", "-s"]),
        list(&["--allowed-tools"]),
        list(&["--extensions", "-e"]),
        list(&["--include-directories"]),
        switch(&["--screen-reader"]),
    ],
    variables: &["QWEN_HOME", "QWEN_RUNTIME_DIR"],
    needs_cwd: true,
    store: Store {
        roots: &[
            Root { variable: "QWEN_RUNTIME_DIR", below: "" },
            Root { variable: "QWEN_HOME", below: "" },
            Root { variable: "HOME", below: ".qwen" },
        ],
        layout: Layout::SlugChats,
    },
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "PermissionDenied",
        "Notification",
        "Stop",
        "SessionEnd",
    ],
    meaning: as_claude,
    look: Look::Words(Table {
        titles: &[],
        braille: false,
        words: &[
            (&["Yes, allow once"], Phase::Asking),
            (&["No, suggest changes (esc)"], Phase::Asking),
            (&["Do you trust this folder?"], Phase::Dialog(super::Dialog::Trust)),
            (&["How would you like to authenticate"], Phase::Dialog(super::Dialog::Login)),
            (&["esc to cancel"], Phase::Working),
        ],
    }),
};
