//! `OpenCode`. Its events come from a plugin, not from hooks.

use serde_json::Value;

use super::Provider;
use super::ids::Shape;
use super::meaning::{Meaning, Source, Turn, binds, noise, text, turn};
use super::signs::{Phase, Table};
use super::spec::{ID, Launch, Look, Naming, OPTIONS, Spec, switch, value};
use super::store::{Layout, Root, Store};

pub(super) const SPEC: Spec = Spec {
    provider: Provider::OpenCode,
    name: "opencode",
    binaries: &["opencode"],
    packages: &["opencode-ai"],
    modules: &[],
    tools: &["serve", "web", "auth", "models", "upgrade", "mcp", "acp", "stats", "export", "session"],
    once: &["run"],
    ids: Shape::Ses,
    naming: Naming { flags: &["--session", "-s"], word: None, forks: &["--fork"] },
    launch: Launch { plain: &["opencode", OPTIONS], chosen: &[] },
    resume: &["opencode", "--session", ID, OPTIONS],
    kept: &[value(&["--model", "-m"]), value(&["--agent"]), switch(&["--auto"]), switch(&["--pure"])],
    variables: &["OPENCODE_CONFIG_DIR", "OPENCODE_DB", "XDG_DATA_HOME"],
    needs_cwd: true,
    store: Store {
        roots: &[
            Root { variable: "XDG_DATA_HOME", below: "opencode" },
            Root { variable: "HOME", below: ".local/share/opencode" },
        ],
        layout: Layout::Database { file: "opencode.db", table: "session", id: "id", cwd: "directory" },
    },
    events: &[
        "session.created",
        "session.status",
        "session.idle",
        "permission.asked",
        "permission.replied",
        "question.asked",
    ],
    meaning,
    look: Look::Words(Table {
        titles: &[],
        braille: false,
        words: &[(&["△ Permission required"], Phase::Asking), (&["esc interrupt"], Phase::Working)],
    }),
};

fn meaning(event: &str, payload: &Value) -> Meaning {
    let turn = |state| turn(state, payload, "sessionID");
    let info = payload.get("info").unwrap_or(payload);
    if text(info, "parentID").is_some() {
        return noise();
    }
    match event {
        "session.created" => binds(Source::Startup, info, "id"),
        "session.status" => match payload.get("status").and_then(|status| text(status, "type")) {
            Some("busy" | "retry") => turn(Turn::Working),
            Some("idle") => turn(Turn::Waiting),
            _ => noise(),
        },
        "session.idle" => turn(Turn::Waiting),
        "permission.asked" | "question.asked" => turn(Turn::NeedsInput),
        "permission.replied" => turn(Turn::Working),
        _ => noise(),
    }
}
