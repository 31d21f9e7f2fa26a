//! The providers that are known in outline: their names, how one conversation is brought back, and what little is known
//! of their hooks and screens.

use serde_json::Value;

use super::Provider;
use super::ids::Shape;
use super::meaning::{Meaning, Source, Turn, as_claude, binds, noise, silent, text, turn};
use super::signs::{Phase, Table};
use super::spec::{ID, Launch, Look, Naming, OPTIONS, Spec, switch, value};
use super::store::Store;

pub(super) const CURSOR: Spec = Spec {
    provider: Provider::Cursor,
    name: "cursor",
    // `agent` is its newer name, which says nothing of whose agent it is
    binaries: &["cursor-agent"],
    packages: &[],
    modules: &[],
    tools: &["login", "logout", "status", "update", "create-chat", "ls", "mcp"],
    once: &["-p", "--print"],
    ids: Shape::Uuid,
    naming: Naming { flags: &["--resume"], word: None, forks: &[] },
    launch: Launch { plain: &["cursor-agent", OPTIONS], chosen: &[] },
    resume: &["cursor-agent", "--resume", ID, OPTIONS],
    kept: &[value(&["--model"]), switch(&["--force", "-f"]), switch(&["--approve-mcps"])],
    variables: &["CURSOR_CONFIG_DIR"],
    needs_cwd: true,
    store: Store::NONE,
    events: &["sessionStart", "beforeSubmitPrompt", "stop", "sessionEnd"],
    meaning: cursor,
    look: Look::Words(Table {
        titles: &[],
        braille: false,
        words: &[
            (&["Skip (esc or n)"], Phase::Asking),
            (&["Waiting for approval"], Phase::Asking),
            (&["ctrl+c to stop"], Phase::Working),
        ],
    }),
};

fn cursor(event: &str, payload: &Value) -> Meaning {
    let turn = |state| turn(state, payload, "conversation_id");
    match event {
        "sessionStart" => binds(Source::of(payload), payload, "conversation_id"),
        "beforeSubmitPrompt" | "preToolUse" | "postToolUse" => turn(Turn::Working),
        "stop" => turn(Turn::Waiting),
        "sessionEnd" => turn(Turn::Ended),
        _ => noise(),
    }
}

pub(super) const AMP: Spec = Spec {
    provider: Provider::Amp,
    name: "amp",
    binaries: &["amp"],
    packages: &["@sourcegraph/amp", "@ampcode/cli"],
    modules: &[],
    tools: &["login", "logout", "mcp", "update", "doctor"],
    once: &["-x", "--execute"],
    ids: Shape::Prefixed { prefix: "T-", bare: false },
    naming: Naming::NONE,
    launch: Launch { plain: &["amp", OPTIONS], chosen: &[] },
    // the word belongs to the exact id after it
    resume: &["amp", OPTIONS, "threads", "continue", ID],
    kept: &[switch(&["--dangerously-allow-all"]), value(&["--mode", "-m"])],
    variables: &["AMP_THREADS_DIR"],
    needs_cwd: false,
    store: Store::NONE,
    events: &[],
    meaning: silent,
    look: Look::Words(Table {
        titles: &[("Plugin confirmation needed", Phase::Asking)],
        braille: true,
        words: &[
            (&["Waiting for approval"], Phase::Asking),
            (&["Allow All for This Session"], Phase::Asking),
        ],
    }),
};

pub(super) const GROK: Spec = Spec {
    provider: Provider::Grok,
    name: "grok",
    binaries: &["grok"],
    packages: &["@xai-official/grok"],
    modules: &[],
    tools: &["login", "logout", "mcp", "plugin", "sessions", "inspect", "update", "setup"],
    once: &["-p", "--prompt"],
    ids: Shape::Uuid,
    naming: Naming {
        flags: &["--session-id", "-s", "--resume", "-r"],
        word: None,
        forks: &["--fork-session"],
    },
    launch: Launch { plain: &["grok", OPTIONS], chosen: &["grok", "--session-id", ID, OPTIONS] },
    resume: &["grok", "--resume", ID, OPTIONS],
    kept: &[
        value(&["--model", "-m"]),
        value(&["--permission-mode"]),
        value(&["--sandbox"]),
        switch(&["--always-approve", "--yolo"]),
    ],
    variables: &["GROK_HOME"],
    needs_cwd: true,
    store: Store::NONE,
    events: &["SessionStart", "UserPromptSubmit", "Notification", "Stop", "StopCancelled", "SessionEnd"],
    meaning: grok,
    look: Look::Words(Table {
        titles: &[("⚠ Action Required", Phase::Asking)],
        braille: true,
        words: &[(&["Ctrl+c:cancel"], Phase::Working)],
    }),
};

fn grok(event: &str, payload: &Value) -> Meaning {
    let kind = text(payload, "notificationType");
    let turn = |state| turn(state, payload, "sessionId");
    match event {
        "SessionStart" => binds(Source::of(payload), payload, "sessionId"),
        "UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure" => turn(Turn::Working),
        "Notification" if kind == Some("permission_prompt") => turn(Turn::NeedsInput),
        "Notification" if kind == Some("idle_prompt") => turn(Turn::Waiting),
        "Stop" | "StopFailure" | "StopCancelled" => turn(Turn::Waiting),
        "SessionEnd" => turn(Turn::Ended),
        _ => noise(),
    }
}

pub(super) const KIRO: Spec = Spec {
    provider: Provider::Kiro,
    name: "kiro",
    binaries: &["kiro-cli"],
    packages: &[],
    modules: &[],
    tools: &["login", "logout", "mcp", "settings", "doctor", "update", "whoami"],
    once: &["--no-interactive"],
    ids: Shape::Prefixed { prefix: "sess_", bare: true },
    naming: Naming { flags: &["--resume-id"], word: None, forks: &[] },
    launch: Launch { plain: &["kiro-cli", "chat", OPTIONS], chosen: &[] },
    resume: &["kiro-cli", "chat", "--resume-id", ID, OPTIONS],
    kept: &[value(&["--model"]), value(&["--agent"]), switch(&["--trust-all-tools", "-a"])],
    variables: &[],
    needs_cwd: false,
    store: Store::NONE,
    events: &["agentSpawn", "userPromptSubmit", "stop"],
    meaning: kiro,
    look: Look::Words(Table {
        titles: &[],
        braille: false,
        words: &[
            (&["requires approval", "Yes, single permission"], Phase::Asking),
            (&["Kiro is working"], Phase::Working),
        ],
    }),
};

fn kiro(event: &str, payload: &Value) -> Meaning {
    let turn = |state| turn(state, payload, "session_id");
    match event {
        "agentSpawn" => binds(Source::Unsaid, payload, "session_id"),
        "userPromptSubmit" | "preToolUse" | "postToolUse" => turn(Turn::Working),
        "stop" => turn(Turn::Waiting),
        _ => noise(),
    }
}

pub(super) const AIDER: Spec = Spec {
    provider: Provider::Aider,
    name: "aider",
    binaries: &["aider"],
    packages: &["aider-chat", "aider"],
    modules: &["aider"],
    tools: &[],
    once: &["-m", "--message", "-f", "--message-file"],
    ids: Shape::Uuid,
    naming: Naming::NONE,
    launch: Launch { plain: &["aider", OPTIONS], chosen: &[] },
    // it has one history for each folder and no conversations
    resume: &[],
    kept: &[value(&["--model"]), switch(&["--no-git"]), switch(&["--architect"])],
    variables: &[],
    needs_cwd: true,
    store: Store::NONE,
    events: &[],
    meaning: silent,
    look: Look::Words(Table { titles: &[], braille: false, words: &[(&["(Y)es/(N)o"], Phase::Asking)] }),
};

pub(super) const CRUSH: Spec = Spec {
    provider: Provider::Crush,
    name: "crush",
    binaries: &["crush"],
    packages: &["@charmland/crush"],
    modules: &[],
    tools: &["logs", "models", "projects", "login", "schema", "update-providers"],
    once: &["run"],
    ids: Shape::Uuid,
    naming: Naming { flags: &["--session", "-s"], word: None, forks: &[] },
    launch: Launch { plain: &["crush", OPTIONS], chosen: &[] },
    resume: &["crush", "--session", ID, OPTIONS],
    kept: &[switch(&["--yolo", "-y"]), value(&["--data-dir", "-D"])],
    variables: &["CRUSH_GLOBAL_CONFIG", "CRUSH_GLOBAL_DATA"],
    needs_cwd: true,
    store: Store::NONE,
    events: &[],
    meaning: silent,
    look: Look::Words(Table {
        titles: &[],
        braille: false,
        words: &[(&["Allow for Session", "Deny"], Phase::Asking)],
    }),
};

pub(super) const GOOSE: Spec = Spec {
    provider: Provider::Goose,
    name: "goose",
    binaries: &["goose"],
    packages: &[],
    modules: &[],
    tools: &["configure", "info", "mcp", "run", "update", "schedule", "web", "acp"],
    once: &[],
    ids: Shape::Day,
    naming: Naming { flags: &["--session-id"], word: None, forks: &[] },
    launch: Launch { plain: &["goose", "session", OPTIONS], chosen: &[] },
    resume: &["goose", "session", "--resume", "--session-id", ID, OPTIONS],
    kept: &[value(&["--with-builtin"])],
    variables: &["XDG_DATA_HOME"],
    needs_cwd: false,
    store: Store::NONE,
    events: &["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"],
    meaning: as_claude,
    look: Look::Words(Table::NONE),
};

pub(super) const ANTIGRAVITY: Spec = Spec {
    provider: Provider::Antigravity,
    name: "antigravity",
    binaries: &["agy"],
    packages: &[],
    modules: &[],
    tools: &["update", "login", "mcp"],
    once: &["-p", "--print", "--prompt"],
    ids: Shape::Uuid,
    naming: Naming { flags: &["--conversation"], word: None, forks: &[] },
    launch: Launch { plain: &["agy", OPTIONS], chosen: &[] },
    resume: &["agy", "--conversation", ID, OPTIONS],
    kept: &[value(&["--model"])],
    variables: &["ANTIGRAVITY_CLI_CONFIG_DIR"],
    needs_cwd: true,
    store: Store::NONE,
    events: &["PreInvocation"],
    meaning: antigravity,
    look: Look::Words(Table {
        titles: &[],
        braille: false,
        words: &[(&["Requesting permission for:", "Do you want to proceed?"], Phase::Asking)],
    }),
};

fn antigravity(event: &str, payload: &Value) -> Meaning {
    match event {
        "PreInvocation" => {
            Meaning { turn: Some(Turn::Working), ..binds(Source::Unsaid, payload, "conversationId") }
        }
        _ => noise(),
    }
}

pub(super) const KIMI: Spec = Spec {
    provider: Provider::Kimi,
    name: "kimi",
    binaries: &["kimi", "kimi-cli"],
    packages: &["kimi-cli"],
    modules: &["kimi_cli"],
    tools: &["login", "logout", "info", "mcp", "web", "acp", "export"],
    once: &["--print", "--quiet"],
    ids: Shape::Uuid,
    naming: Naming { flags: &["--session", "-S", "--resume", "-r"], word: None, forks: &[] },
    // an id it does not know begins that conversation
    launch: Launch { plain: &["kimi", OPTIONS], chosen: &["kimi", "--session", ID, OPTIONS] },
    resume: &["kimi", "--session", ID, OPTIONS],
    kept: &[value(&["--model", "-m"]), switch(&["--yolo", "-y"]), value(&["--agent"])],
    variables: &["KIMI_SHARE_DIR"],
    needs_cwd: true,
    store: Store::NONE,
    events: &[],
    meaning: silent,
    look: Look::Words(Table::NONE),
};
