//! The variables by which agents mark what they started: they make the next agent believe it runs inside another.

/// Whether a variable marks an agent's own child and must not reach another agent. Names that choose an account or a folder
/// are no markers.
#[must_use]
pub fn scrub(name: &str) -> bool {
    const MARKS: &[&str] = &[
        "CLAUDECODE",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_SKIP_PROMPT_HISTORY",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_ENV_FILE",
        "CLAUDE_PID",
        "CLAUDE_PROJECT_DIR",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_THREAD_ID",
        "GEMINI_CLI",
        "OPENCODE",
        "QWEN_CODE",
    ];
    MARKS.contains(&name)
}
