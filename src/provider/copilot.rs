//! GitHub Copilot CLI.

use serde_json::Value;

use super::Provider;
use super::ids::Shape;
use super::meaning::{Meaning, Source, Turn, binds, noise, text, turn};
use super::signs::{Phase, Table};
use super::spec::{Launch, Look, Naming, OPTIONS, Spec, list, switch, value};
use super::store::{Layout, Root, Store};

pub(super) const SPEC: Spec = Spec {
    provider: Provider::Copilot,
    name: "copilot",
    binaries: &["copilot"],
    packages: &["@github/copilot"],
    modules: &[],
    tools: &["mcp", "plugin", "help", "login", "update"],
    once: &["-p", "--prompt"],
    ids: Shape::Uuid,
    naming: Naming { flags: &["--session-id", "--resume", "-r"], word: None, forks: &[] },
    // the value is optional for the program: only the form with `=` cannot be taken apart
    launch: Launch {
        plain: &["copilot", OPTIONS],
        chosen: &["copilot", "--session-id={session_id}", OPTIONS],
    },
    resume: &["copilot", "--resume={session_id}", OPTIONS],
    kept: &[
        value(&["--model"]),
        value(&["--agent"]),
        switch(&["--allow-all", "--yolo"]),
        switch(&["--allow-all-tools"]),
        switch(&["--allow-all-paths"]),
        switch(&["--allow-all-urls"]),
        list(&["--allow-tool"]),
        list(&["--deny-tool"]),
        list(&["--allow-url"]),
        list(&["--deny-url"]),
        value(&["--add-dir"]),
        switch(&["--disable-builtin-mcps"]),
        value(&["--disable-mcp-server"]),
        switch(&["--experimental"]),
        switch(&["--screen-reader"]),
    ],
    variables: &["COPILOT_HOME"],
    needs_cwd: false,
    store: Store {
        roots: &[Root { variable: "COPILOT_HOME", below: "" }, Root { variable: "HOME", below: ".copilot" }],
        layout: Layout::Folders,
    },
    events: &[
        "sessionStart",
        "userPromptSubmitted",
        "preToolUse",
        "postToolUse",
        "notification",
        "agentStop",
        "sessionEnd",
    ],
    meaning,
    look: Look::Words(Table {
        titles: &[],
        braille: false,
        words: &[
            (&["Confirm folder trust"], Phase::Dialog(super::Dialog::Trust)),
            (&["Do you trust the files in this folder?"], Phase::Dialog(super::Dialog::Trust)),
            (&["enter to select", "esc to cancel"], Phase::Asking),
            (&["enter to confirm", "esc to cancel"], Phase::Asking),
            (&["enter to submit", "esc to cancel"], Phase::Asking),
            (&["enter to accept", "esc to cancel"], Phase::Asking),
            (&["Enter to select", "Esc to cancel"], Phase::Asking),
            (&["Enter to confirm", "Esc to cancel"], Phase::Asking),
            (&["esc to cancel"], Phase::Working),
            (&["Esc to cancel"], Phase::Working),
        ],
    }),
};

fn meaning(event: &str, payload: &Value) -> Meaning {
    // an event set down as `SessionStart` gets its payload in the other spelling
    let id = if text(payload, "sessionId").is_some() { "sessionId" } else { "session_id" };
    let kind = text(payload, "notificationType").or_else(|| text(payload, "notification_type"));
    let turn = |state| turn(state, payload, id);
    let mut letters = event.chars();
    let event: String = letters.next().map(|c| c.to_ascii_lowercase()).into_iter().chain(letters).collect();
    match event.as_str() {
        "sessionStart" => binds(Source::of(payload), payload, id),
        "userPromptSubmitted" | "preToolUse" | "postToolUse" | "postToolUseFailure" => turn(Turn::Working),
        "notification" if matches!(kind, Some("permission_prompt" | "elicitation_dialog")) => {
            turn(Turn::NeedsInput)
        }
        "agentStop" => turn(Turn::Waiting),
        "sessionEnd" => turn(Turn::Ended),
        // `permissionRequest` runs before the policy: most of the time nobody is asked
        _ => noise(),
    }
}
