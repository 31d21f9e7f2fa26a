//! The providers and how one is found by the names it goes by.
//!
//! A name that says nothing of whose program it is (`agent`) is no provider's.

use bstr::ByteSlice;

use super::spec::Spec;
use super::{claude, codex, copilot, gemini, hermes, opencode, others, pi, qwen};

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
    /// xAI's Grok Build.
    Grok,
    /// Kimi CLI.
    Kimi,
}

/// Every provider, the ones known best first.
const ROWS: &[Spec] = &[
    claude::SPEC,
    codex::SPEC,
    gemini::SPEC,
    opencode::SPEC,
    hermes::SPEC,
    copilot::SPEC,
    qwen::SPEC,
    pi::SPEC,
    others::CURSOR,
    others::AMP,
    others::KIRO,
    others::AIDER,
    others::CRUSH,
    others::GOOSE,
    others::ANTIGRAVITY,
    others::GROK,
    others::KIMI,
];

/// What release builds put after the name of a program: `codex-x86_64-unknown-linux-musl`.
const PLATFORMS: &[&str] = &["-x86_64-", "-aarch64-", "-linux-", "-darwin-"];

/// The variables that every record keeps: where programs are found and how text is written.
pub(super) const ALWAYS_KEPT: &[&str] = &["PATH", "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES"];

impl Provider {
    /// Every provider, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.provider)
    }

    /// The provider's short name, as records and settings write it: `claude`, `codex` …
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// All that is known of it.
    pub(super) fn spec(self) -> &'static Spec {
        // the table has a row for every variant: a test walks them
        ROWS.iter().find(|row| row.provider == self).unwrap_or(&ROWS[0])
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
        const PACKAGES: &str = "/node_modules/";
        let installed: Vec<&[u8]> = path.find_iter(PACKAGES).map(|at| &path[at + PACKAGES.len()..]).collect();
        let is_of = |package: &str| {
            let is_below = |rest: &[u8]| rest.starts_with(b"/");
            installed.iter().any(|rest| rest.strip_prefix(package.as_bytes()).is_some_and(is_below))
        };
        let row = ROWS.iter().find(|row| row.packages.iter().any(|package| is_of(package)));
        row.map(|row| row.provider)
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
