//! The providers and the names they go by: one row each.
//!
//! Binaries are the names of the programs themselves; packages are what `npx`, `uvx` and `node_modules` call them;
//! modules are what `python -m` takes. A name that other programs use too (`agent`, `grok`) is not in here.

/// A kind of coding agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// Claude Code.
    Claude,
    /// `OpenAI` Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// `OpenCode`.
    OpenCode,
    /// Hermes.
    Hermes,
    /// GitHub Copilot CLI.
    Copilot,
    /// Qwen Code.
    Qwen,
    /// pi.
    Pi,
    /// Cursor's agent.
    Cursor,
    /// Amp.
    Amp,
    /// Kiro CLI.
    Kiro,
    /// aider.
    Aider,
    /// Crush.
    Crush,
    /// Goose.
    Goose,
    /// Antigravity CLI.
    Antigravity,
}

struct Row {
    provider: Provider,
    name: &'static str,
    binaries: &'static [&'static str],
    packages: &'static [&'static str],
    modules: &'static [&'static str],
}

const ROWS: &[Row] = &[
    Row {
        provider: Provider::Claude,
        name: "claude",
        binaries: &["claude"],
        packages: &["@anthropic-ai/claude-code"],
        modules: &[],
    },
    Row {
        provider: Provider::Codex,
        name: "codex",
        binaries: &["codex"],
        packages: &["@openai/codex"],
        modules: &[],
    },
    Row {
        provider: Provider::Gemini,
        name: "gemini",
        binaries: &["gemini"],
        packages: &["@google/gemini-cli"],
        modules: &[],
    },
    Row {
        provider: Provider::OpenCode,
        name: "opencode",
        binaries: &["opencode"],
        packages: &["opencode-ai"],
        modules: &[],
    },
    Row {
        provider: Provider::Hermes,
        name: "hermes",
        binaries: &["hermes"],
        packages: &["hermes-agent"],
        modules: &["hermes_cli", "hermes"],
    },
    Row {
        provider: Provider::Copilot,
        name: "copilot",
        binaries: &["copilot"],
        packages: &["@github/copilot"],
        modules: &[],
    },
    Row {
        provider: Provider::Qwen,
        name: "qwen",
        binaries: &["qwen"],
        packages: &["@qwen-code/qwen-code"],
        modules: &[],
    },
    Row {
        provider: Provider::Pi,
        name: "pi",
        binaries: &["pi"],
        packages: &["@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent"],
        modules: &[],
    },
    Row {
        provider: Provider::Cursor,
        name: "cursor",
        binaries: &["cursor-agent"],
        packages: &[],
        modules: &[],
    },
    Row {
        provider: Provider::Amp,
        name: "amp",
        binaries: &["amp"],
        packages: &["@sourcegraph/amp"],
        modules: &[],
    },
    Row { provider: Provider::Kiro, name: "kiro", binaries: &["kiro-cli"], packages: &[], modules: &[] },
    Row {
        provider: Provider::Aider,
        name: "aider",
        binaries: &["aider"],
        packages: &["aider-chat", "aider"],
        modules: &["aider"],
    },
    Row {
        provider: Provider::Crush,
        name: "crush",
        binaries: &["crush"],
        packages: &["@charmland/crush"],
        modules: &[],
    },
    Row { provider: Provider::Goose, name: "goose", binaries: &["goose"], packages: &[], modules: &[] },
    Row {
        provider: Provider::Antigravity,
        name: "antigravity",
        binaries: &["agy"],
        packages: &[],
        modules: &[],
    },
];

/// What release builds put after the name of a program: `codex-x86_64-unknown-linux-musl`.
const PLATFORMS: &[&str] = &["-x86_64-", "-aarch64-", "-linux-", "-darwin-"];

impl Provider {
    /// Every provider, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.provider)
    }

    /// The provider's short name, as records and settings write it: `claude`, `codex` …
    #[must_use]
    pub fn name(self) -> &'static str {
        // the table has a row for every variant: a test walks them
        ROWS.iter().find(|row| row.provider == self).map_or("", |row| row.name)
    }

    /// The variables of an agent's environment that a record keeps: what it needs to come back as it was, and no secret.
    #[must_use]
    pub fn kept_variables(self) -> Vec<&'static str> {
        let own: &[&str] = match self {
            Self::Claude => &["CLAUDE_CONFIG_DIR", "CLAUDE_CODE_PROJECT_DIR_NAME"],
            Self::Codex => &["CODEX_HOME"],
            Self::Gemini => &["GEMINI_CLI_HOME"],
            Self::OpenCode => &["OPENCODE_CONFIG_DIR", "OPENCODE_DB", "XDG_DATA_HOME"],
            Self::Hermes => &["HERMES_HOME"],
            Self::Copilot => &["COPILOT_HOME"],
            Self::Qwen => &["QWEN_HOME", "QWEN_RUNTIME_DIR"],
            Self::Pi => &["PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"],
            Self::Cursor
            | Self::Amp
            | Self::Kiro
            | Self::Aider
            | Self::Crush
            | Self::Goose
            | Self::Antigravity => &[],
        };
        ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES"].iter().chain(own).copied().collect()
    }

    /// The provider of that short name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.provider)
    }

    /// The provider whose program has exactly this file name, apart from the platform a release build carries in it.
    pub(super) fn by_binary(name: &[u8]) -> Option<Self> {
        let is = |binary: &str| {
            name == binary.as_bytes()
                || name.strip_prefix(binary.as_bytes()).is_some_and(|rest| {
                    PLATFORMS.iter().any(|platform| rest.starts_with(platform.as_bytes()))
                })
        };
        ROWS.iter().find(|row| row.binaries.iter().any(|binary| is(binary))).map(|row| row.provider)
    }

    /// The provider in whose installed package this file lies: `…/node_modules/@openai/codex/…`.
    pub(super) fn by_path(path: &[u8]) -> Option<Self> {
        ROWS.iter()
            .find(|row| {
                row.packages.iter().any(|package| {
                    let folder = format!("/node_modules/{package}/");
                    path.windows(folder.len()).any(|part| part == folder.as_bytes())
                })
            })
            .map(|row| row.provider)
    }

    /// The provider of a package as a launcher is told it: `@openai/codex@latest`, `npm:opencode-ai`.
    pub(super) fn by_package(word: &[u8]) -> Option<Self> {
        let word = word.strip_prefix(b"npm:").unwrap_or(word);
        // the first `@` of a scoped package is part of its name
        let version = word.iter().skip(1).position(|b| *b == b'@');
        let package = version.map_or(word, |at| &word[..=at]);
        ROWS.iter()
            .find(|row| row.packages.iter().any(|known| known.as_bytes() == package))
            .map(|row| row.provider)
    }

    /// The provider of a Python module.
    pub(super) fn by_module(module: &[u8]) -> Option<Self> {
        ROWS.iter()
            .find(|row| row.modules.iter().any(|known| known.as_bytes() == module))
            .map(|row| row.provider)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_belongs_to_one_row() {
        let mut names = Vec::new();
        for row in ROWS {
            assert_eq!(row.provider.name(), row.name);
            assert_eq!(Provider::named(row.name), Some(row.provider));
            names.extend(row.binaries.iter().map(|name| ("binary", *name)));
            names.extend(row.packages.iter().map(|name| ("package", *name)));
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert_eq!(Provider::all().count(), ROWS.len());
        assert_eq!(Provider::named("vim"), None);
    }
}
