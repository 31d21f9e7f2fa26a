//! The variables by which an agent tells its children that they run inside it. An agent that inherits another's stays
//! silent, saves no transcript or takes the other's id, so they are unset before one is started.

/// The markers of every provider. Settings a user makes on purpose (`CLAUDE_CODE_USE_BEDROCK`, `GROK_HOME`,
/// `CODEX_HOME` …) are not among them: only names that a running agent is known to hand down.
const MARKERS: &[&str] = &[
    // what this program hands to the agent it brings back: for that one only
    "AITASK_RESTORE_RECORD",
    "AITASK_RESTORE_NONCE",
    // Claude Code
    "CLAUDECODE",
    "CLAUDE_PID",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_PLUGIN_ROOT",
    "CLAUDE_PLUGIN_DATA",
    "CLAUDE_SESSION_ID",
    "CLAUDE_EFFORT",
    "CLAUDE_AGENT_SDK_VERSION",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_PARENT_SESSION_ID",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_SKIP_PROMPT_HISTORY",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_AGENT_ID",
    "CLAUDE_CODE_AGENT_NAME",
    "CLAUDE_CODE_AGENT_TYPE",
    "CLAUDE_CODE_TEAM_NAME",
    "CLAUDE_CODE_TMUX_SESSION",
    "CLAUDE_CODE_TMUX_PREFIX",
    // Codex
    "CODEX_THREAD_ID",
    "CODEX_SESSION_ID",
    "CODEX_CI",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_INTERNAL_ORIGINATOR_OVERRIDE",
    "CODEX_MANAGED_BY_NPM",
    "CODEX_MANAGED_BY_BUN",
    // Gemini, Qwen
    "GEMINI_CLI",
    "GEMINI_SESSION_ID",
    "GEMINI_CWD",
    "GEMINI_PROJECT_DIR",
    "GEMINI_CLI_NO_RELAUNCH",
    "QWEN_CODE",
    "QWEN_SESSION_ID",
    "QWEN_PROJECT_DIR",
    "QWEN_CODE_NO_RELAUNCH",
    // OpenCode
    "OPENCODE",
    "OPENCODE_PID",
    "OPENCODE_RUN_ID",
    "OPENCODE_SESSION_ID",
    // Hermes
    "HERMES_SESSION_ID",
    "HERMES_SESSION_KEY",
    "HERMES_SESSION_SOURCE",
    "HERMES_INTERACTIVE",
    // the rest
    "COPILOT_CLI",
    "COPILOT_SESSION_ID",
    "COPILOT_AGENT_SESSION_ID",
    "PI_CODING_AGENT",
    "PI_SESSION_ID",
    "CURSOR_AGENT",
    "CURSOR_TRACE_ID",
    "CURSOR_CONVERSATION_ID",
    "AMP_THREAD_ID",
    "AMP_CURRENT_THREAD_ID",
    "GROK_AGENT",
    "GROK_SESSION_ID",
    "GROK_HOOK_EVENT",
    "GROK_HOOK_NAME",
    "GROK_WORKSPACE_ROOT",
    "KIRO_SESSION_ID",
    "CRUSH",
    "CRUSH_SESSION_ID",
    "GOOSE_TERMINAL",
    "GOOSE_SESSION_ID",
    "AGENT_SESSION_ID",
    "AGENT_SESSION_RUNTIME_ID",
    // the secret of a control plane
    "AGENT_SESSION_TOKEN",
    "ANTIGRAVITY_AGENT",
    "ANTIGRAVITY_CONVERSATION_ID",
    "KIMI_SESSION_ID",
    "AGENT",
    "AI_AGENT",
    // a terminal's secret for one program
    "OSC7577_TOKEN",
];

/// Whether this variable marks a child of some agent and must be unset before an agent is started.
///
/// Every agent's markers count, the started one's own too. What `ait exec` sets for the agent itself is set after this.
#[must_use]
pub fn scrub(name: &str) -> bool {
    MARKERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Catalog;

    #[test]
    fn markers_go_and_settings_stay() {
        for gone in ["CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CODEX_THREAD_ID", "AITASK_RESTORE_NONCE"] {
            assert!(scrub(gone), "{gone}");
        }
        for stays in [
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_FORCE_SESSION_PERSISTENCE",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "ANTHROPIC_BASE_URL",
            "GROK_HOME",
            "TMUX",
            "TMUX_PANE",
            "HOME",
            "claudecode",
            "",
        ] {
            assert!(!scrub(stays), "{stays}");
        }
        let catalog = Catalog::default();
        for kind in catalog.kinds() {
            for kept in catalog.kept_variables(kind) {
                assert!(!scrub(kept), "{kind}: {kept} is kept and unset");
            }
        }
    }
}
