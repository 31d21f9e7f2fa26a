//! pi. Its events come from an extension, not from hooks. It never asks for a permission.

use serde_json::Value;

use super::Provider;
use super::ids::Shape;
use super::meaning::{Meaning, Source, Turn, binds, noise, text, turn};
use super::signs::{Phase, Table};
use super::spec::{ID, Launch, Look, Naming, OPTIONS, Spec, switch, value};
use super::store::{Layout, Root, Store};

pub(super) const SPEC: Spec = Spec {
    provider: Provider::Pi,
    name: "pi",
    binaries: &["pi"],
    packages: &["@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent"],
    modules: &[],
    tools: &["install", "remove", "update", "list", "config"],
    once: &["-p", "--print"],
    ids: Shape::Uuid,
    naming: Naming { flags: &["--session"], word: None, forks: &["--fork"] },
    launch: Launch { plain: &["pi", OPTIONS], chosen: &[] },
    resume: &["pi", "--session", ID, OPTIONS],
    kept: &[
        value(&["--model"]),
        value(&["--models"]),
        value(&["--provider"]),
        value(&["--thinking"]),
        value(&["--tools", "-t"]),
        value(&["--session-dir"]),
        value(&["--extension", "-e"]),
        value(&["--skill"]),
        switch(&["--no-tools", "-nt"]),
        switch(&["--no-builtin-tools", "-nbt"]),
        switch(&["--no-extensions", "-ne"]),
        switch(&["--no-skills", "-ns"]),
        switch(&["--no-context-files", "-nc"]),
    ],
    variables: &["PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"],
    needs_cwd: true,
    store: Store {
        roots: &[
            Root { variable: "PI_CODING_AGENT_SESSION_DIR", below: "" },
            Root { variable: "PI_CODING_AGENT_DIR", below: "sessions" },
            Root { variable: "HOME", below: ".pi/agent/sessions" },
        ],
        layout: Layout::Dashed,
    },
    events: &[
        "session_start",
        "session_switch",
        "session_fork",
        "agent_start",
        "agent_end",
        "session_shutdown",
    ],
    meaning,
    look: Look::Words(Table { titles: &[], braille: false, words: &[(&["Working..."], Phase::Working)] }),
};

fn meaning(event: &str, payload: &Value) -> Meaning {
    let id = if text(payload, "sessionId").is_some() { "sessionId" } else { "session_id" };
    let turn = |state| turn(state, payload, id);
    match event {
        "session_start" => binds(Source::of(payload), payload, id),
        "session_switch" => Meaning { turn: Some(Turn::Waiting), ..binds(Source::Resume, payload, id) },
        "session_fork" => binds(Source::Fork, payload, id),
        "agent_start" | "tool_call" => turn(Turn::Working),
        "agent_end" => turn(Turn::Waiting),
        "session_shutdown" => turn(Turn::Ended),
        _ => noise(),
    }
}
