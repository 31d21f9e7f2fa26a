//! The user's own settings: `${XDG_CONFIG_HOME:-~/.config}/ait/config.toml`.
//!
//! A file that is not there is all defaults. A key that is not known is a warning, so that an older `ait` lives with a newer
//! file; a value that makes no sense is an error with its line, and nothing of the file is taken then. It is never written.

mod notify;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::provider::{self, Catalog, Refused};
use crate::record::Policy;
pub use notify::{Notify, Terminal};

/// The longest settings file that is read, in bytes.
const LONGEST: u64 = 1024 * 1024;
/// Lines of history a capture may hold, unless the user says otherwise.
pub const CAPTURE_MAX_LINES: u32 = 50_000;
/// How long a restored agent has for its acknowledgement, unless the user says otherwise.
pub const RESTORE_ACK_GRACE: Duration = Duration::from_secs(20);

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Config {
    /// What becomes of agents that went with their server or their boot.
    pub recover: Policy,
    /// What becomes of agents that crashed by themselves. An end for want of memory is never made good by itself.
    pub recover_agents: Policy,
    /// Automatic writes outside our own files: task files that agents were linked into follow their conversations. With
    /// [`Signals::tap`], when an agent last wrote anything is told as well: a guess at whether it waits.
    pub tracking: bool,
    /// `[archive]`.
    pub archive: Archive,
    /// `[frozen]`.
    pub frozen: Frozen,
    /// `[env]`.
    pub env: Env,
    /// `[notify]`.
    pub notify: Notify,
    /// `[signals]`.
    pub signals: Signals,
    /// `[providers.<name>]`: agents that are not built in. A built-in one is never redefined: its name and its program are taken.
    pub providers: BTreeMap<String, Custom>,
}

/// `[archive]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Archive {
    /// How long retired records are kept.
    #[serde(deserialize_with = "duration")]
    pub keep: Duration,
}

/// `[frozen]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Frozen {
    /// Lines of history a capture holds at the most.
    pub capture_max_lines: u32,
    /// How long a restored agent has for its acknowledgement.
    #[serde(deserialize_with = "duration")]
    pub restore_ack_grace: Duration,
}

/// `[env]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Env {
    /// Names of variables that are recorded with each agent, besides those its provider names. One that names a secret is
    /// left out, with a warning.
    #[serde(deserialize_with = "names")]
    pub keep: Vec<String>,
}

/// `[signals]`: what is read of what agents write to their terminals. All of it is off unless it is switched on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Signals {
    /// Panes that are started here are tapped: what agents tell their terminals of their turns (OSC 7501, 9;4 and 133) is read
    /// behind tmux's `pipe-pane`.
    pub tap: bool,
    /// With `tap`: agents of which nothing else tells (pi) are answered that OSC 7501 is understood, by input while they start.
    pub answer: bool,
}

/// `[providers.<name>]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Custom {
    /// Names its program goes by.
    #[serde(deserialize_with = "one_or_more")]
    pub binary: Vec<String>,
    /// How it is started, word by word; `{session}` stands for an id we choose.
    pub launch: Vec<String>,
    /// How one conversation is brought back, word by word; `{session}` stands for its id.
    pub resume: Vec<String>,
    /// The folder of its conversations; `~/` stands for home.
    pub store: Option<String>,
    /// Names of variables that say where its files lie.
    #[serde(deserialize_with = "names")]
    pub keep: Vec<String>,
}

impl Config {
    /// The built-in providers and the user's own, and what is kept of every agent's environment.
    ///
    /// # Errors
    ///
    /// [`Refused`] for the first of the user's that cannot be used.
    pub fn catalog(&self) -> Result<Catalog, Refused> {
        let customs = self.providers.iter().map(|(name, custom)| provider::Custom {
            name: name.clone(),
            binaries: custom.binary.clone(),
            launch: custom.launch.clone(),
            resume: custom.resume.clone(),
            keep: custom.keep.clone(),
            store: custom.store.clone().unwrap_or_default(),
            // nothing says that its conversations are found from elsewhere
            needs_cwd: true,
        });
        Ok(Catalog::new(customs.collect())?.keeping(&self.env.keep))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            recover: Policy::Auto,
            recover_agents: Policy::Offer,
            tracking: false,
            archive: Archive::default(),
            frozen: Frozen::default(),
            env: Env::default(),
            notify: Notify::default(),
            signals: Signals::default(),
            providers: BTreeMap::new(),
        }
    }
}

impl Default for Archive {
    fn default() -> Self {
        Self { keep: crate::store::KEEP }
    }
}

impl Default for Frozen {
    fn default() -> Self {
        Self { capture_max_lines: CAPTURE_MAX_LINES, restore_ack_grace: RESTORE_ACK_GRACE }
    }
}

/// The settings as read, with what was not understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// Keys that mean nothing, each named in words.
    pub warnings: Vec<String>,
}

/// Why the settings could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The system refused.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no TOML, or a value makes no sense.
    #[error("{path}:{line}: {why}")]
    Bad {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        why: String,
    },
}

impl Config {
    /// Where the settings of this process's user lie; `None` where nobody says where home is.
    #[must_use]
    pub fn path() -> Option<PathBuf> {
        Self::path_from(|name| std::env::var_os(name))
    }

    /// Where they lie by these variables.
    fn path_from(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let set = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user = || nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|user| user.dir);
        let base = set("XDG_CONFIG_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| Some(set("HOME").or_else(user)?.join(".config")))?;
        Some(base.join("ait/config.toml"))
    }

    /// The settings of this process's user.
    ///
    /// # Errors
    /// [`ConfigError`]; a file that is not there is none.
    pub fn load() -> Result<Loaded, ConfigError> {
        Self::path().map_or_else(|| Ok(Loaded::default()), |path| Self::read(&path))
    }

    /// The settings in that file.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn read(path: &Path) -> Result<Loaded, ConfigError> {
        let failed = |source| ConfigError::Io { path: path.to_owned(), source };
        // what is no regular file (a pipe) would be waited for
        match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Loaded::default()),
            Err(error) => return Err(failed(error)),
            Ok(meta) if !meta.is_file() => return Err(failed(io::Error::other("it is no regular file"))),
            Ok(_) => {}
        }
        let mut text = String::new();
        let read =
            std::fs::File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
        read.map_err(failed)?;
        if text.len() as u64 > LONGEST {
            return Err(failed(io::Error::other(format!("it is longer than {LONGEST} bytes"))));
        }
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Loaded, ConfigError> {
        let bad = |error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            ConfigError::Bad { path: path.to_owned(), line, why: error.message().replace('\n', " ") }
        };
        let config: Config = toml::from_str(text).map_err(bad)?;
        let table: toml::Table = toml::from_str(text).map_err(bad)?;
        let mut warnings = unknown(&table);
        let secret = config.env.keep.iter().filter(|name| !provider::may_be_kept(name));
        warnings.extend(secret.map(|name| {
            format!("env.keep: {name} is not kept: it is a secret by its name, or marks a running agent")
        }));
        Ok(Loaded { config, warnings })
    }
}

/// The keys that mean nothing here.
fn unknown(table: &toml::Table) -> Vec<String> {
    const TOP: &[&str] = &[
        "recover",
        "recover_agents",
        "tracking",
        "archive",
        "frozen",
        "env",
        "notify",
        "signals",
        "providers",
    ];
    const CUSTOM: &[&str] = &["binary", "launch", "resume", "store", "keep"];
    let mut found = Vec::new();
    let mut look = |table: &toml::Table, at: &str, known: &[&str]| {
        let strange = table.keys().filter(|key| !known.contains(&key.as_str()));
        found.extend(strange.map(|key| format!("unknown key {at}{key}")));
    };
    look(table, "", TOP);
    for (name, known) in [
        ("archive", &["keep"] as &[&str]),
        ("frozen", &["capture_max_lines", "restore_ack_grace"]),
        ("env", &["keep"]),
        ("notify", Notify::KEYS),
        ("signals", &["tap", "answer"]),
    ] {
        if let Some(toml::Value::Table(inner)) = table.get(name) {
            look(inner, &format!("{name}."), known);
        }
    }
    if let Some(toml::Value::Table(providers)) = table.get("providers") {
        for (name, inner) in providers {
            if let toml::Value::Table(inner) = inner {
                look(inner, &format!("providers.{name}."), CUSTOM);
            }
        }
    }
    found
}

/// `90s`, `10m`, `12h`, `365d`.
fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        "d" => Some(86_400),
        _ => None,
    };
    let seconds = number.parse::<u64>().ok().zip(unit).and_then(|(count, unit)| count.checked_mul(unit));
    seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs).ok_or_else(|| {
        serde::de::Error::custom(format!("{text:?} is no time such as \"20s\", \"10m\", \"12h\" or \"365d\""))
    })
}

/// Names of environment variables.
fn names<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names: Vec<String> = Vec::deserialize(deserializer)?;
    let good = |name: &String| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match names.iter().find(|name| !good(name)) {
        Some(bad) => Err(serde::de::Error::custom(format!("{bad:?} is no name of a variable"))),
        None => Ok(names),
    }
}

/// A word, or a list of words.
fn one_or_more<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        One(String),
        More(Vec<String>),
    }
    Ok(match Words::deserialize(deserializer)? {
        Words::One(word) => vec![word],
        Words::More(words) => words,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::notify::note::Reason;

    fn parse(text: &str) -> Result<Loaded, String> {
        Config::parse(text, Path::new("c.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_file_is_all_defaults() {
        let Loaded { config, warnings } = parse("").unwrap();
        assert_eq!(config, Config::default());
        assert_eq!((config.recover, config.recover_agents), (Policy::Auto, Policy::Offer));
        assert_eq!(config.archive.keep, Duration::from_secs(365 * 86_400));
        assert_eq!(config.frozen.capture_max_lines, 50_000);
        assert_eq!(config.frozen.restore_ack_grace, Duration::from_secs(20));
        assert!(!config.tracking && warnings.is_empty());
        assert!(config.notify.reasons().is_empty(), "nobody is told");
    }

    #[test]
    fn every_key_is_read() {
        let text = r#"
            recover = "offer"
            recover_agents = "auto"
            tracking = true
            [archive]
            keep = "30d"
            [frozen]
            capture_max_lines = 100
            restore_ack_grace = "2m"
            [env]
            keep = ["MY_DIR"]
            [notify]
            command = ["told", "-"]
            on = ["lost"]
            timeout = "3s"
            terminal = "osc9"
            [providers.mine]
            binary = "mine"
            launch = ["mine", "--id", "{session}"]
            resume = ["mine", "--resume", "{session}"]
            store = "~/.mine"
            keep = ["MINE_HOME"]
        "#;
        let Loaded { config, warnings } = parse(text).unwrap();
        assert_eq!((config.recover, config.recover_agents), (Policy::Offer, Policy::Auto));
        assert_eq!(config.archive.keep, Duration::from_secs(30 * 86_400));
        assert_eq!(config.frozen.restore_ack_grace, Duration::from_secs(120));
        assert_eq!(config.env.keep, ["MY_DIR"]);
        assert_eq!(config.notify.command, ["told", "-"]);
        assert_eq!((config.notify.terminal, config.notify.timeout.as_secs()), (Terminal::Osc9, 3));
        assert_eq!(config.notify.reasons(), [Reason::Lost].into());
        let mine = &config.providers["mine"];
        assert_eq!(mine.binary, ["mine"]);
        assert_eq!(mine.resume, ["mine", "--resume", "{session}"]);
        assert_eq!(
            (mine.store.as_deref(), mine.keep.as_slice()),
            (Some("~/.mine"), &["MINE_HOME".into()][..])
        );
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn what_is_kept_is_kept_of_every_agent_and_no_secret_is() {
        let text = r#"
            env.keep = ["MY_DIR", "MY_API_TOKEN", "PATH"]
            [providers.mine]
            binary = "mine"
            keep = ["MINE_HOME"]
        "#;
        let Loaded { config, warnings } = parse(text).unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("MY_API_TOKEN"), "{warnings:?}");
        let catalog = config.catalog().unwrap();
        for (kind, own) in [("claude", "CLAUDE_CONFIG_DIR"), ("mine", "MINE_HOME")] {
            let kept = catalog.kept_variables(kind);
            assert!(kept.contains(&own) && kept.contains(&"MY_DIR"), "{kept:?}");
            assert!(!kept.contains(&"MY_API_TOKEN"), "{kept:?}");
            assert_eq!(kept.iter().filter(|name| **name == "PATH").count(), 1, "{kept:?}");
            assert!(!catalog.own_variables(kind).contains(&"MY_DIR"), "it was not looked for at each agent");
        }
    }

    #[test]
    fn a_built_in_provider_is_not_redefined() {
        for (text, told) in [
            ("[providers.claude]\nbinary = \"mine\"\n", "the name `claude` is taken"),
            ("[providers.mine]\nbinary = \"claude\"\n", "`claude` is no program"),
        ] {
            let refused = parse(text).unwrap().config.catalog().unwrap_err().to_string();
            assert!(refused.starts_with(told), "{refused}");
        }
    }

    #[test]
    fn unknown_keys_are_warned_of_and_bad_values_named_with_their_line() {
        let told = parse("colour = 1\n[frozen]\nshade = 2\n[providers.x]\nbin = \"x\"\n").unwrap();
        assert_eq!(
            told.warnings,
            ["unknown key colour", "unknown key frozen.shade", "unknown key providers.x.bin"]
        );
        for (text, told) in [
            ("\nrecover = \"never\"\n", "c.toml:2: unknown variant `never`"),
            ("[archive]\nkeep = \"7 weeks\"\n", "c.toml:2: \"7 weeks\" is no time"),
            ("[archive]\nkeep = \"0d\"\n", "c.toml:2: \"0d\" is no time"),
            ("[env]\nkeep = [\"A=B\"]\n", "c.toml:2: \"A=B\" is no name of a variable"),
            ("a = 1\nb = \n", "c.toml:2: "),
            ("[notify]\ncommand = \"x\"\n", "c.toml:2: invalid type"),
            ("[notify]\ncommand = []\n", "c.toml:2: [] is no command: it has no program"),
            ("[notify]\n\ncommand = [\" \"]\n", "c.toml:3: [\" \"] is no command: its program has no name"),
            ("[notify]\ncommand = [\"a\", \"\\u0000\"]\n", "c.toml:2: [\"a\", \"\\0\"] is no command"),
            ("[notify]\non = [\"ended\"]\n", "c.toml:2: unknown variant `ended`"),
            ("notify.terminal = \"osc99\"\n", "c.toml:1: unknown variant `osc99`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(told), "{error}");
        }
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Config::read(&folder.path().join("none.toml")).unwrap(), Loaded::default());
        assert!(matches!(Config::read(folder.path()), Err(ConfigError::Io { .. })));
    }

    #[test]
    fn the_place_is_that_of_the_environment() {
        let at = |vars: &[(&str, &str)]| {
            Config::path_from(|name| vars.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).into()))
                .unwrap()
        };
        assert_eq!(at(&[("HOME", "/h")]), Path::new("/h/.config/ait/config.toml"));
        assert_eq!(at(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")]), Path::new("/c/ait/config.toml"));
        assert!(at(&[]).ends_with(".config/ait/config.toml"));
    }
}
