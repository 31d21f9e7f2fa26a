//! Hermes.

use serde_json::Value;

use super::Provider;
use super::ids::Shape;
use super::meaning::{Meaning, Source, Turn, binds, noise, turn};
use super::signs::{Phase, Table};
use super::spec::{ID, Launch, Look, Naming, OPTIONS, Spec, switch, value};
use super::store::{Layout, Root, Store};

pub(super) const SPEC: Spec = Spec {
    provider: Provider::Hermes,
    name: "hermes",
    binaries: &["hermes"],
    packages: &["hermes-agent"],
    modules: &["hermes_cli", "hermes"],
    tools: &["gateway", "cron", "setup", "config", "doctor", "login", "logout", "update", "mcp", "sessions"],
    once: &["-z", "--oneshot", "-q", "--query"],
    ids: Shape::Stamp,
    naming: Naming { flags: &["--resume", "-r"], word: None, forks: &[] },
    launch: Launch { plain: &["hermes", OPTIONS], chosen: &[] },
    resume: &["hermes", OPTIONS, "--resume", ID],
    kept: &[
        switch(&["--tui"]),
        // another profile has another store
        value(&["--profile", "-p"]),
        value(&["--model", "-m"]),
        value(&["--provider"]),
        value(&["--toolsets", "-t"]),
        switch(&["--yolo"]),
        switch(&["--accept-hooks"]),
        switch(&["--safe-mode"]),
        switch(&["--ignore-user-config"]),
        switch(&["--ignore-rules"]),
    ],
    variables: &["HERMES_HOME"],
    needs_cwd: false,
    store: Store {
        roots: &[Root { variable: "HERMES_HOME", below: "" }, Root { variable: "HOME", below: ".hermes" }],
        layout: Layout::Database { file: "state.db", table: "sessions", id: "id", cwd: "cwd" },
    },
    events: &[
        "on_session_start",
        "pre_llm_call",
        "pre_approval_request",
        "post_approval_response",
        "on_session_end",
        "on_session_reset",
        "on_session_finalize",
    ],
    meaning,
    look: Look::Words(Table {
        titles: &[("⚠", Phase::Asking), ("⏳", Phase::Working), ("✓", Phase::Ready)],
        braille: false,
        words: &[(&["Dangerous Command", "Deny"], Phase::Asking), (&["[o]nce", "[d]eny"], Phase::Asking)],
    }),
};

fn meaning(event: &str, payload: &Value) -> Meaning {
    let turn = |state| turn(state, payload, "session_id");
    match event {
        // it comes with the first prompt, whatever the session is
        "on_session_start" => binds(Source::Unsaid, payload, "session_id"),
        "on_session_reset" => binds(Source::Clear, payload, "session_id"),
        "pre_llm_call" | "post_approval_response" => turn(Turn::Working),
        "pre_approval_request" => turn(Turn::NeedsInput),
        // the end of a turn; the session's end is the next one
        "on_session_end" => turn(Turn::Waiting),
        "on_session_finalize" => turn(Turn::Ended),
        _ => noise(),
    }
}
