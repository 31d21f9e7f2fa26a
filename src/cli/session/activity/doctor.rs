//! `ait activity doctor`: of each provider its version, whether its hooks are in, and when they were last heard.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use clap::Args as ClapArgs;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;

use super::setup::{home_of, homes, trust};
use crate::cli::session::Given;
use crate::cli::session::begin;
use crate::cli::session::envelope::{self, Answer};
use crate::cli::session::paths;
use crate::cli::{Exit, Failure, block_on_any, print, program};
use crate::hooks::settings::{Home, caution};
use crate::provider::{Catalog, Provider};
use crate::record::Record;
use crate::store::turns::{self, Diagnostic, Whose};
use crate::store::{Paths, Store};
use crate::turn::Moment;

/// How long a provider's program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest version that is told, in characters.
const LONGEST: usize = 160;

/// Show of each provider its version, whether its hooks are set up, and when they were last heard.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  ait activity doctor --agent claude")]
pub(super) struct Args {
    /// Only this provider
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    given: Given,
}

#[derive(Debug, Serialize)]
struct Told {
    provider: &'static str,
    classification: &'static str,
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_error: Option<String>,
    configured: bool,
    /// Why its settings cannot be read; it is then not known whether the hooks are in.
    #[serde(skip_serializing_if = "Option::is_none")]
    config_error: Option<String>,
    config_path: String,
    completion: &'static str,
    attention_correlation: &'static str,
    trust: &'static str,
    guidance: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_event_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    helper_executable: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    envelope::say("activity-doctor", &args.given, || {
        let homes: Vec<Home> = match &args.agent {
            Some(name) => vec![home_of(name)?],
            None => homes().collect(),
        };
        let paths = paths()?;
        let versions = block_on_any(versions(&homes))?;
        let snapshot = Store::open(paths.clone()).read()?;
        let own = program::path();
        let told: Vec<Told> = homes
            .iter()
            .zip(versions)
            .map(|(home, version)| {
                let name = home.provider.name();
                let records = snapshot.records.iter().filter(|record| record.agent_kind == name);
                of(home, version, heard(&paths, records), own.as_ref().ok().map(|path| path.as_path()))
            })
            .collect();
        let text: String = told.iter().map(text).collect();
        Answer::new(serde_json::json!({"providers": told}), text)
    })
}

fn of(
    home: &Home,
    version: Result<String, String>,
    (last_event_at, last_error): (Option<Moment>, Option<String>),
    own: Option<&std::path::Path>,
) -> Told {
    let (version, version_error) = match version {
        Ok(version) => (Some(version), None),
        Err(why) => (None, Some(why)),
    };
    let (configured, config_error) = match own.filter(|_| home.is_there()).map(|own| home.install(own)) {
        Some(Ok(missing)) => (missing.is_none(), None),
        Some(Err(why)) => (false, Some(why.to_string())),
        None => (false, None),
    };
    let name = home.provider.name();
    Told {
        provider: name,
        classification: classification(home.provider, version.as_deref()),
        version,
        version_error,
        configured,
        guidance: guidance(home, configured, config_error.as_deref()),
        config_error,
        config_path: home.file.to_string_lossy().into_owned(),
        completion: completion(home.provider),
        attention_correlation: correlation(home.provider),
        trust: trust(home.provider),
        last_event_at,
        last_error,
        helper_executable: own.is_some_and(|path| path.is_file()),
    }
}

/// When the hooks of running agents were last heard, and what is wrong with the last of them; of other launches nothing counts.
fn heard<'a>(paths: &Paths, records: impl Iterator<Item = &'a Record>) -> (Option<Moment>, Option<String>) {
    let mut last_event: Option<Moment> = None;
    let mut last_error: Option<Diagnostic> = None;
    for record in records {
        let whose = Whose::of(record);
        last_event = last_event.max(turns::of(paths, &whose).latest.map(|event| event.at));
        if let Some(wrong) = Diagnostic::read(paths, &whose)
            && last_error.as_ref().is_none_or(|last| last.observed_at < wrong.observed_at)
        {
            last_error = Some(wrong);
        }
    }
    (last_event, last_error.map(|wrong| wrong.code))
}

/// What each provider's program says of its version, all asked at once.
async fn versions(homes: &[Home]) -> Vec<Result<String, String>> {
    let asked: Vec<_> = homes
        .iter()
        .map(|home| {
            let name = home.provider.name();
            let plain = Catalog::default()
                .binaries(name)
                .first()
                .map_or_else(|| name.to_owned(), |first| (*first).to_owned());
            tokio::spawn(version(begin::set_binary(name).map_or_else(|| plain.into(), Into::into)))
        })
        .collect();
    let mut all = Vec::with_capacity(asked.len());
    for one in asked {
        all.push(one.await.unwrap_or_else(|_| Err("probe-panicked".to_owned())));
    }
    all
}

async fn version(binary: OsString) -> Result<String, String> {
    let mut command = tokio::process::Command::new(binary);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // what it starts ends with it
    let child = command.process_group(0).kill_on_drop(true).spawn().map_err(|_| "unavailable".to_owned())?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let Ok(ended) = tokio::time::timeout(PATIENCE, child.wait_with_output()).await else {
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        return Err("timeout".to_owned());
    };
    let ended = ended.map_err(|_| "probe-output-failed".to_owned())?;
    if !ended.status.success() {
        return Err(ended
            .status
            .code()
            .map_or_else(|| "probe-failed".to_owned(), |code| format!("exit-{code}")));
    }
    let first = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    };
    let line = first(&ended.stdout).or_else(|| first(&ended.stderr)).ok_or("empty-output")?;
    Ok(line.chars().filter(|c| !c.is_control()).take(LONGEST).collect())
}

/// What is promised of this version: its turns were measured from that one on.
fn classification(provider: Provider, version: Option<&str>) -> &'static str {
    let Some(version) = version else { return "unavailable" };
    let (floor, from_then) = match provider {
        Provider::Codex => ([0, 144, 1], "partial"),
        Provider::Claude => ([2, 1, 198], "partial"),
        Provider::Hermes => ([0, 18, 0], "supported"),
        _ => return "unverified",
    };
    if numbers(version).is_some_and(|version| version >= floor) { from_then } else { "unverified" }
}

/// The `x.y.z` of a version's line.
fn numbers(text: &str) -> Option<[u64; 3]> {
    text.split_whitespace().find_map(|word| {
        let mut parts = word.trim_start_matches('v').splitn(3, '.');
        let mut next = || {
            let part = parts.next()?;
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..digits].parse().ok()
        };
        Some([next()?, next()?, next()?])
    })
}

/// What tells that a turn is over.
fn completion(provider: Provider) -> &'static str {
    match provider {
        Provider::Claude => "hook, registry",
        Provider::Codex => "hook, title",
        _ => "hook",
    }
}

/// What a request for input is told from another one by.
fn correlation(provider: Provider) -> &'static str {
    match provider {
        Provider::Claude => "tool_use_id",
        _ => "tool",
    }
}

fn guidance(home: &Home, configured: bool, wrong: Option<&str>) -> String {
    let name = home.provider.name();
    if let Some(wrong) = wrong {
        return wrong.to_owned();
    }
    if !home.is_there() {
        return format!("{name} was not used here: there is no {}", home.folder.display());
    }
    match (configured, caution(home.provider)) {
        (true, Some(caution)) => format!("its hooks are set up; {caution}"),
        (true, None) => "its hooks are set up".to_owned(),
        (false, _) => format!("`ait activity setup --agent {name} --apply` sets its hooks up"),
    }
}

fn text(told: &Told) -> String {
    let shown = |text: &str| print::shown(text.as_bytes());
    let version = told.version.as_deref().or(told.version_error.as_deref()).unwrap_or("-");
    let heard = told.last_event_at.map_or_else(|| "-".to_owned(), |at| at.to_string());
    let mut out = format!(
        "{}: {}, {}\n  configured: {} ({})\n  last event: {heard}\n  {}\n",
        told.provider,
        told.classification,
        shown(version),
        if told.configured { "yes" } else { "no" },
        shown(&told.config_path),
        shown(&told.guidance),
    );
    if let Some(wrong) = &told.last_error {
        out.push_str(&format!("  last error: {}\n", shown(wrong)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_of_a_version() {
        for (provider, version, said) in [
            (Provider::Claude, Some("2.1.198 (Claude Code)"), "partial"),
            (Provider::Claude, Some("2.1.99 (Claude Code)"), "unverified"),
            (Provider::Codex, Some("codex-cli 0.144.1"), "partial"),
            (Provider::Codex, Some("codex-cli 1.0.0-alpha.3"), "partial"),
            (Provider::Hermes, Some("hermes v0.18.0"), "supported"),
            (Provider::Hermes, Some("hermes, of today"), "unverified"),
            (Provider::Gemini, Some("9.9.9"), "unverified"),
            (Provider::Claude, None, "unavailable"),
        ] {
            assert_eq!(classification(provider, version), said, "{version:?}");
        }
    }
}
