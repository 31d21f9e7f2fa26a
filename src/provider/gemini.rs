//! Gemini CLI.

use serde_json::Value;

use super::Provider;
use super::ids::Shape;
use super::meaning::{Meaning, Source, Turn, binds, noise, text, turn};
use super::signs::{Phase, Table};
use super::spec::{ID, Launch, Look, Naming, OPTIONS, Spec, list, switch, value};
use super::store::{Layout, Root, Store};

pub(super) const SPEC: Spec = Spec {
    provider: Provider::Gemini,
    name: "gemini",
    binaries: &["gemini"],
    packages: &["@google/gemini-cli"],
    modules: &[],
    tools: &["mcp", "extensions", "hooks", "skills"],
    once: &["-p", "--prompt"],
    ids: Shape::Uuid,
    naming: Naming { flags: &["--session-id", "--resume", "-r"], word: None, forks: &[] },
    launch: Launch { plain: &["gemini", OPTIONS], chosen: &["gemini", "--session-id", ID, OPTIONS] },
    resume: &["gemini", "--resume", ID, OPTIONS],
    kept: &[
        value(&["--model", "-m"]),
        value(&["--approval-mode"]),
        switch(&["--yolo", "-y"]),
        switch(&["--sandbox", "-s"]),
        list(&["--allowed-tools"]),
        list(&["--allowed-mcp-server-names"]),
        list(&["--extensions", "-e"]),
        list(&["--include-directories"]),
        list(&["--policy"]),
        switch(&["--screen-reader"]),
    ],
    variables: &["GEMINI_CLI_HOME"],
    needs_cwd: true,
    store: Store {
        roots: &[
            Root { variable: "GEMINI_CLI_HOME", below: ".gemini" },
            Root { variable: "HOME", below: ".gemini" },
        ],
        layout: Layout::Chats,
    },
    // the events of the model come once for each chunk it writes
    events: &[
        "SessionStart",
        "BeforeAgent",
        "BeforeTool",
        "AfterTool",
        "Notification",
        "AfterAgent",
        "SessionEnd",
    ],
    meaning,
    look: Look::Words(Table {
        titles: &[
            ("◇  Ready", Phase::Ready),
            ("✋  Action Required", Phase::Asking),
            ("⏲  ", Phase::Working),
            ("✦  ", Phase::Working),
        ],
        braille: false,
        words: &[
            (&["No, suggest changes (esc)"], Phase::Asking),
            (&["Allow once", "Allow for this session"], Phase::Asking),
            (&["Do you trust this folder?"], Phase::Dialog(super::Dialog::Trust)),
            (&["Do you trust the files in this folder?"], Phase::Dialog(super::Dialog::Trust)),
            (&["How would you like to authenticate"], Phase::Dialog(super::Dialog::Login)),
            (&["esc to cancel"], Phase::Working),
        ],
    }),
};

fn meaning(event: &str, payload: &Value) -> Meaning {
    let turn = |state| turn(state, payload, "session_id");
    match event {
        "SessionStart" => binds(Source::of(payload), payload, "session_id"),
        "BeforeAgent" | "BeforeTool" | "AfterTool" => turn(Turn::Working),
        "AfterAgent" => turn(Turn::Waiting),
        "Notification" if text(payload, "notification_type") == Some("ToolPermission") => {
            turn(Turn::NeedsInput)
        }
        "SessionEnd" if text(payload, "reason") != Some("clear") => turn(Turn::Ended),
        _ => noise(),
    }
}
