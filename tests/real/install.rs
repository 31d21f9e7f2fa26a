//! The agents, pinned, installed once into a cache folder under a lock.
//!
//! A finished install has a mark, written last, that names what was installed; without it the folder is made anew. Every
//! run of the suite asks each agent for its version once and takes nothing else than the pinned one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use crate::support::Ran;

/// An agent that can be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    /// What its program is called, and the provider.
    pub(crate) name: &'static str,
    /// The version that is pinned.
    pub(crate) version: &'static str,
    from: Source,
}

/// Where an agent comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// Packages of npm, each pinned.
    Npm(&'static [&'static str]),
    /// A package of PyPI, pinned, in a virtual environment.
    Pip(&'static str),
}

/// Claude Code.
pub(crate) const CLAUDE: Kind =
    Kind { name: "claude", version: "2.1.332", from: Source::Npm(&["@anthropic-ai/claude-code@2.1.332"]) };
/// Codex.
pub(crate) const CODEX: Kind =
    Kind { name: "codex", version: "0.171.0", from: Source::Npm(&["@openai/codex@0.171.0"]) };
/// Gemini CLI.
pub(crate) const GEMINI: Kind =
    Kind { name: "gemini", version: "0.61.0", from: Source::Npm(&["@google/gemini-cli@0.61.0"]) };
/// OpenCode; it would install its plugin package at its first start, and hang without a network.
pub(crate) const OPENCODE: Kind = Kind {
    name: "opencode",
    version: "1.18.33",
    from: Source::Npm(&["opencode-ai@1.18.33", "@opencode-ai/plugin@1.18.33"]),
};
/// pi.
pub(crate) const PI: Kind =
    Kind { name: "pi", version: "0.73.1", from: Source::Npm(&["@mariozechner/pi-coding-agent@0.73.1"]) };
/// Hermes.
pub(crate) const HERMES: Kind =
    Kind { name: "hermes", version: "0.19.0", from: Source::Pip("hermes-agent==0.19.0") };

/// All there are.
const ALL: &[Kind] = &[CLAUDE, CODEX, GEMINI, OPENCODE, PI, HERMES];
/// Those `AIT_REAL_AGENTS=1` means.
const FIRST: &[Kind] = &[CLAUDE, CODEX];

/// Which agents `AIT_REAL_AGENTS` demands; none when it is not set.
#[track_caller]
pub(crate) fn demanded() -> Vec<Kind> {
    let words = std::env::var("AIT_REAL_AGENTS").unwrap_or_default();
    match words.as_str() {
        "" | "0" => Vec::new(),
        "1" => FIRST.to_vec(),
        "all" => ALL.to_vec(),
        list => list.split([',', ' ']).filter(|word| !word.is_empty()).map(named).collect(),
    }
}

#[track_caller]
fn named(word: &str) -> Kind {
    let known = || ALL.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
    *ALL.iter()
        .find(|kind| kind.name == word)
        .unwrap_or_else(|| panic!("AIT_REAL_AGENTS names `{word}`; there are {} (or 1, or all)", known()))
}

/// The folder the installs live in.
#[track_caller]
fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("AIT_REAL_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("ait-real-agents")))
        .or_else(|| Some(set("HOME")?.join(".cache/ait-real-agents")))
        .expect("AIT_REAL_CACHE, XDG_CACHE_HOME or HOME says where the agents are installed")
}

/// What was found in this run already.
static FOUND: Mutex<BTreeMap<&str, Result<PathBuf, String>>> = Mutex::new(BTreeMap::new());

impl Kind {
    /// Its program, installed if need be; or why it cannot be had here.
    pub(crate) fn program(self) -> Result<PathBuf, String> {
        let mut found = FOUND.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        found.entry(self.name).or_insert_with(|| self.find()).clone()
    }

    /// The folder of its install.
    pub(crate) fn folder(self) -> PathBuf {
        cache().join(format!("{}-{}", self.name, self.version))
    }

    fn find(self) -> Result<PathBuf, String> {
        let folder = self.folder();
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let lock = fs::File::create(cache().join(format!("{}.lock", self.name))).unwrap();
        lock.lock().unwrap();
        let program = match self.from {
            Source::Npm(_) => folder.join("node_modules/.bin").join(self.name),
            Source::Pip(_) => folder.join("bin").join(self.name),
        };
        let mark = folder.join(".installed");
        let wanted = format!("{:?}", self.from);
        if fs::read_to_string(&mark).is_ok_and(|text| text == wanted) && self.answers(&program).is_ok() {
            return Ok(program);
        }
        let start = Instant::now();
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        self.install(&folder)?;
        self.answers(&program)?;
        fs::write(&mark, wanted).unwrap();
        eprintln!("installed {} {} in {:.1} s", self.name, self.version, start.elapsed().as_secs_f32());
        Ok(program)
    }

    fn install(self, folder: &Path) -> Result<(), String> {
        match self.from {
            Source::Npm(packages) => {
                let mut npm = Command::new("npm");
                npm.args(["install", "--no-fund", "--no-audit", "--loglevel=error", "--prefix"]).arg(folder);
                done(npm.args(packages))
            }
            Source::Pip(package) => {
                done(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
                done(Command::new(folder.join("bin/pip")).args(["install", "--quiet", package]))
            }
        }
    }

    /// Whether `program` says that it is the pinned version.
    fn answers(self, program: &Path) -> Result<(), String> {
        let version = output(Command::new(program).arg("--version"))?;
        if version.split(|c: char| c.is_whitespace() || c == 'v').any(|word| word == self.version) {
            return Ok(());
        }
        Err(format!("{} is not {}: it says {version:?}", program.display(), self.version))
    }
}

fn done(command: &mut Command) -> Result<(), String> {
    output(command).map(drop)
}

/// What `command` printed, or what went wrong in one line. Installs take long on a bad network: npm's own bounds hold.
fn output(command: &mut Command) -> Result<String, String> {
    let line = format!("{command:?}");
    let ran = command.stdin(std::process::Stdio::null()).output();
    let ran = ran.map_err(|error| format!("{line}: {error}"))?;
    // pi says its version among its errors
    let said =
        [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).join("\n");
    if ran.status.success() { Ok(said) } else { Err(format!("{line}: {}\n{said}", ran.status)) }
}

/// Fails unless every demanded agent is installed and says the pinned version; `.ci/run` asks this first.
#[test]
fn the_demanded_agents_are_installed() {
    let demanded = demanded();
    if demanded.is_empty() {
        return crate::support::not_run("AIT_REAL_AGENTS is not set");
    }
    for kind in demanded {
        let program = kind.program().unwrap_or_else(|why| panic!("{} cannot be had: {why}", kind.name));
        println!("{} {}: {}", kind.name, kind.version, program.display());
    }
}

#[test]
fn an_agent_of_another_version_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("claude");
    let says = |text: &str| {
        fs::write(&program, format!("#!/bin/sh\necho '{text}'\n")).unwrap();
        Ran::run(Command::new("chmod").arg("755").arg(&program)).ok();
        CLAUDE.answers(&program)
    };
    assert!(says("2.1.332 (Claude Code)").is_ok());
    for other in ["2.1.3320 (Claude Code)", "2.1.33", "", "claude"] {
        assert!(says(other).unwrap_err().contains("is not 2.1.332"), "{other:?}");
    }
}
