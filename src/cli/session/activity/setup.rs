//! `ait activity setup`: the hooks of one provider, put in or taken out; the one entry that `ait setup` has too.

use clap::{ArgGroup, Args as ClapArgs};
use serde_json::json;

use crate::cli::session::Given;
use crate::cli::session::envelope::{self, Answer, Trouble};
use crate::cli::session::face::Face;
use crate::cli::setup::diff::shown_path;
use crate::cli::{Exit, Failure, program};
use crate::hooks::settings::{Declined, Home, PROVIDERS, SettingsError, caution};
use crate::provider::{Catalog, Provider};
use crate::service::{Change, ServiceError};
use crate::store::Paths;

/// Put the hooks of a provider into its settings, or take them out; every foreign byte stays.
#[derive(Debug, ClapArgs)]
#[command(
    group = ArgGroup::new("what").required(true),
    after_help = "Examples:\n  ait activity setup --agent claude --dry-run\n  ait activity setup --agent codex --apply"
)]
pub(super) struct Args {
    /// Whose hooks: claude, codex, hermes, gemini, qwen or copilot
    #[arg(long, value_name = "NAME")]
    agent: String,
    /// Only say what would change
    #[arg(long, group = "what")]
    dry_run: bool,
    /// Put them in
    #[arg(long, group = "what")]
    apply: bool,
    /// Take them out
    #[arg(long, group = "what")]
    remove: bool,
    /// Put back what is missing of them
    #[arg(long, group = "what")]
    repair: bool,
    #[command(flatten)]
    given: Given,
}

impl Args {
    fn action(&self) -> &'static str {
        match (self.dry_run, self.remove, self.repair) {
            (true, ..) => "dry-run",
            (_, true, _) => "remove",
            (.., true) => "repair",
            _ => "apply",
        }
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    envelope::say("activity-setup", &args.given, || set_up(args))
}

fn set_up(args: &Args) -> Result<Answer, Trouble> {
    let home = home_of(&args.agent)?;
    let provider = home.provider;
    let missing = home.install(&program::path()?).map_err(refused)?;
    let configured = missing.is_none();
    let change = if args.remove { home.remove().map_err(refused)? } else { missing };
    let changes = change.is_some();
    if let (Some(change), false) = (&change, args.dry_run) {
        apply(change, provider, args.remove)?;
    }
    let would_configure = !args.remove;
    let events = Catalog::default().hook_events(provider.name());
    let data = json!({
        "provider": provider.name(),
        "action": args.action(),
        "changed": changes && !args.dry_run,
        "would_change": changes,
        "configured": if args.dry_run { configured } else { would_configure },
        "would_configure": would_configure,
        "config_path": home.file.to_string_lossy(),
        "owned_events": events,
        "trust": trust(provider),
    });
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    let mut text = format!(
        "{}: {}\nconfigured now: {}\nwould configure: {}\n",
        provider.name(),
        shown_path(&home.file),
        yes(data["configured"] == true),
        yes(would_configure),
    );
    if let Some(caution) = caution(provider).filter(|_| would_configure) {
        text.push_str(&format!("note: {caution}\n"));
    }
    Answer::new(data, text)
}

fn apply(change: &Change, provider: Provider, removes: bool) -> Result<(), Trouble> {
    change.apply().map_err(|wrong| refused(wrong.into()))?;
    let mut declined = Declined::read(&Paths::from_env()?);
    let (unwanted, wanted): (&[Provider], &[Provider]) =
        if removes { (&[provider], &[]) } else { (&[], &[provider]) };
    Ok(declined.write(unwanted, wanted)?)
}

/// Whether the provider wants its user's word before it runs a new hook.
pub(super) fn trust(provider: Provider) -> &'static str {
    if caution(provider).is_some() { "asks-at-next-start" } else { "not-needed" }
}

/// The providers whose hooks are known to this command line.
pub(super) fn homes() -> impl Iterator<Item = Home> {
    let known = |provider: &Provider| {
        Face::ours() == Face::Ait || matches!(provider, Provider::Codex | Provider::Claude | Provider::Hermes)
    };
    PROVIDERS
        .into_iter()
        .filter(known)
        .filter_map(|provider| Home::of(provider, |name| std::env::var_os(name)))
}

pub(super) fn home_of(name: &str) -> Result<Home, Trouble> {
    if std::env::var_os("HOME").is_none_or(|home| home.is_empty()) {
        return Err(Trouble::new(Exit::FAILED, "home-unavailable", "HOME is not set").of_no_command());
    }
    homes().find(|home| home.provider.name() == name).ok_or_else(|| {
        let known: Vec<&str> = homes().map(|home| home.provider.name()).collect();
        Trouble::new(Exit::USAGE, "invalid-agent", format!("no hooks are known of {name:?}"))
            .hint(format!("one of: {}", known.join(", ")))
    })
}

fn refused(why: SettingsError) -> Trouble {
    let (exit, code) = match &why {
        SettingsError::Refused { .. } => (Exit::BAD_DATA, "provider-config-invalid"),
        SettingsError::NoHome { .. } => (Exit::UNAVAILABLE, "provider-home-unavailable"),
        SettingsError::File(ServiceError::Changed { .. }) => {
            (Exit::FAILED, "provider-config-concurrent-modification")
        }
        SettingsError::File(ServiceError::NotOurs { .. }) => (Exit::BAD_DATA, "provider-config-invalid"),
        SettingsError::File(_) => (Exit::FAILED, "provider-config-failed"),
    };
    let trouble = Trouble::new(exit, code, why.to_string());
    match why {
        SettingsError::NoHome { .. } => trouble.hint("start it once, then run this again"),
        SettingsError::Refused { .. } | SettingsError::File(_) => trouble,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn each_refusal_has_its_code_and_its_exit() {
        let path = || PathBuf::from("/home/x/.claude/settings.json");
        let not_ours = ServiceError::NotOurs { path: path(), why: "it is read-only".to_owned() };
        for (why, exit, code) in [
            (
                SettingsError::File(ServiceError::Changed { path: path() }),
                Exit::FAILED,
                "provider-config-concurrent-modification",
            ),
            (SettingsError::File(not_ours), Exit::BAD_DATA, "provider-config-invalid"),
            (
                SettingsError::Refused { path: path(), why: "it is no JSON".to_owned() },
                Exit::BAD_DATA,
                "provider-config-invalid",
            ),
        ] {
            assert_eq!(refused(why).codes(), (exit, code));
        }
    }
}
