//! `ait setup`: everything that is needed, shown before it is done, and taken back by `--remove`.
//!
//! Nothing is written before every change was shown and agreed to. What cannot be done is found before anything is done,
//! as far as looking can find it.

pub(in crate::cli) mod diff;
mod folders;
mod hooks;
mod start;

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use tmux_control::Version;

use self::hooks::Hooks;
use super::{Exit, Failure, adopt, ask, print, program, settings, sockets};
use crate::lifecycle;
use crate::lifecycle::touched::{self, Touched};
use crate::service::{self, Autostart, PASSED, Place, Plan, Start};
use crate::store::{Paths, Store};
use crate::tmux::{self, OneShot, Unanswered};

/// Start the supervisor with the machine and now, and adopt the agents already running.
///
/// It checks tmux and makes the folders first. Every change of a file is shown as a diff before anything is done; on a
/// terminal you are asked, in a script it takes --yes. Run again, it changes only what is not as it should be.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  ait setup --dry-run      see what would be done\n  ait setup                do it\n  \
                        ait setup --remove       take everything back but the records"
)]
pub(super) struct Args {
    /// Show what would be done and do nothing.
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Do it without asking.
    #[arg(long, short = 'y', conflicts_with = "dry_run")]
    yes: bool,
    /// Stop the supervisor and take everything of ait out of your files; the records stay.
    #[arg(long, conflicts_with = "autostart")]
    remove: bool,
    /// How the supervisor is started with the machine; without it, what this machine offers.
    #[arg(long, value_name = "HOW")]
    autostart: Option<Way>,
    /// Leave the providers' settings alone.
    #[arg(long, conflicts_with_all = ["remove", "hooks"])]
    no_hooks: bool,
    /// Set up the hooks of these providers only: claude, gemini, qwen, copilot; and, since they ask you to review
    /// them at their next start, only if named here: codex, hermes.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "remove")]
    hooks: Option<Vec<String>>,
}

/// [`Autostart`] as a word of the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Way {
    /// A systemd user unit.
    Systemd,
    /// A launchd agent (macOS).
    Launchd,
    /// One marked line in your tmux.conf.
    Tmux,
    /// Not at all.
    None,
}

impl From<Way> for Autostart {
    fn from(way: Way) -> Self {
        match way {
            Way::Systemd => Self::Systemd,
            Way::Launchd => Self::Launchd,
            Way::Tmux => Self::Tmux,
            Way::None => Self::None,
        }
    }
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    super::block_on(async move { if args.remove { remove(&args).await } else { set_up(&args).await } })
}

async fn set_up(args: &Args) -> Result<Exit, Failure> {
    let place = place()?;
    // before anything is done: what follows asks for them
    settings::catalog()?;
    let version = tmux_version().await?;
    print::text(&format!("{version}\n"))?;
    let autostart = match args.autostart {
        Some(way) => way.into(),
        None => service::choose().await,
    };
    let start = what_to_start()?;
    let folders = folders::missing()?;
    let plan = service::plan(&place, &start, autostart)?;
    let hooks = Hooks::set_up(args, &start.program)?;
    let nothing_to_write = folders.is_empty() && plan.changes.is_empty() && hooks.is_empty();

    for folder in &folders {
        print::text(&format!("folder {} ({})\n", diff::shown_path(folder.path()), folder.what()))?;
    }
    show(&plan)?;
    hooks.show()?;
    print::text(&format!("autostart: {}\n", told(&plan, &place)))?;
    if args.dry_run {
        print::text("then: start the supervisor and adopt what runs:\n")?;
        adopt::all(adopt::Mode::Plan).await?;
        print::text("nothing was changed (--dry-run)\n")?;
        return Ok(Exit::OK);
    }
    if !nothing_to_write && !args.yes && !ask::whether("Do this?")? {
        print::text("nothing was changed\n")?;
        return Ok(Exit::FAILED);
    }
    // another way of starting goes before its file does
    let obsolete = service::found(&place)?;
    for old in obsolete.iter().filter(|old| old.autostart != autostart) {
        service::unregister(old.autostart, &place).await?;
    }
    for folder in &folders {
        folder.make()?;
    }
    carry_out(&plan)?;
    hooks.carry_out()?;
    if !(nothing_to_write && start::is_up()?) {
        if matches!(autostart, Autostart::Systemd | Autostart::Launchd) {
            // the system starts its own; one that was started by hand would keep it from being ready
            start::stop().await?;
        }
        service::register(autostart, &place).await?;
    }
    let up = start::now(&start.program).await?;
    print::text(&format!("supervisor: running (pid {up})\n"))?;
    adopt::all(adopt::Mode::Act).await?;
    print::text(
        "\nNext:\n  ait status            what is under care, and what needs you\n  ait status --watch    the same, live\n  \
         ait doctor            whether anything is in the way\n  ait setup --remove    take all of this back\n",
    )?;
    Ok(Exit::OK)
}

async fn remove(args: &Args) -> Result<Exit, Failure> {
    let place = place()?;
    let plan = service::plan_removal(&place)?;
    let found = service::found(&place)?;
    let up = start::is_up()?;
    let set = on_servers().await?;
    let hooks = Hooks::remove();
    if plan.changes.is_empty() && !up && set.is_empty() && hooks.is_empty() {
        print::text("nothing of ait is set up here\n")?;
        return Ok(Exit::OK);
    }
    show(&plan)?;
    hooks.show()?;
    for (server, found) in &set {
        let name = diff::shown_path(server.socket());
        print::text(&match found {
            Ok(_) => format!("what is set on {name} is taken back (`ait doctor --touched` lists it)\n"),
            Err(why) => format!("{name} cannot be asked: {}\n", print::shown(why.to_string().as_bytes())),
        })?;
    }
    if up {
        print::text("the supervisor is stopped; agents and tmux servers go on\n")?;
    }
    if args.dry_run {
        print::text("nothing was changed (--dry-run)\n")?;
        return Ok(Exit::OK);
    }
    if !args.yes && !ask::whether("Do this?")? {
        print::text("nothing was changed\n")?;
        return Ok(Exit::FAILED);
    }
    for old in &found {
        service::unregister(old.autostart, &place).await?;
    }
    carry_out(&plan)?;
    hooks.carry_out()?;
    for old in &found {
        service::forget(old.autostart).await;
    }
    start::stop().await?;
    let mut left = withdraw().await?;
    left.extend(hooks.left().iter().cloned());
    for line in &left {
        print::text(&format!("left behind: {}\n", print::shown(line.as_bytes())))?;
    }
    print::text(&format!("removed; the records stay in {}\n", diff::shown_path(&folders::store()?)))?;
    Ok(if left.is_empty() { Exit::OK } else { Exit::FAILED })
}

/// What is set on servers, each with what it is set on; a server that cannot be asked is told with the reason.
async fn on_servers() -> Result<Vec<(OneShot, Result<Touched, Unanswered>)>, Failure> {
    let records = Store::open(Paths::from_env()?).read().ok().map(|snapshot| snapshot.records.clone());
    let mut all = Vec::new();
    for socket in sockets::all(&[], records.as_ref()) {
        let server = OneShot::new(&socket)?;
        match touched::read(&server).await {
            Ok(touched) if touched == Touched::default() => {}
            Err(Unanswered::NoServer { .. }) => {}
            found => all.push((server, found)),
        }
    }
    Ok(all)
}

/// Takes back what a supervisor that did not end cleanly left on the servers. Gives what is still there.
async fn withdraw() -> Result<Vec<String>, Failure> {
    let mut left = Vec::new();
    for (server, found) in on_servers().await? {
        let name = diff::shown_path(server.socket());
        match found {
            Ok(touched) => match lifecycle::adopt::epoch(&server).await {
                Ok(epoch) => {
                    let kept = touched::withdraw(&server, &epoch, &touched).await;
                    left.extend(kept.into_iter().map(|what| format!("{name}: {what}")));
                }
                Err(why) => left.push(format!("{name}: {why}")),
            },
            Err(why) => left.push(format!("{name}: {why}")),
        }
    }
    Ok(left)
}

fn show(plan: &Plan) -> Result<(), Failure> {
    for change in &plan.changes {
        print::text(&diff::unified(change))?;
    }
    Ok(())
}

fn carry_out(plan: &Plan) -> Result<(), Failure> {
    for (done, change) in plan.changes.iter().enumerate() {
        change.apply().map_err(|wrong| {
            let before: Vec<String> =
                plan.changes.iter().take(done).map(|change| diff::shown_path(change.path())).collect();
            let failure = Failure::from(wrong);
            if before.is_empty() {
                failure
            } else {
                failure.hint(format!("already written: {}", before.join(", ")))
            }
        })?;
    }
    Ok(())
}

/// What starts the supervisor with the machine, in words.
fn told(plan: &Plan, place: &Place) -> String {
    let word = plan.autostart.word();
    match plan.autostart {
        Autostart::Systemd | Autostart::Launchd => format!("{word}, at login"),
        Autostart::Tmux => format!("{word}, with every server that starts"),
        Autostart::None => {
            format!("{word}; start it with `ait supervise --detach` (home {})", place.home.display())
        }
    }
}

/// The oldest tmux that has what is needed.
const OLDEST: Version = Version::release(3, 2, None);

/// Says which tmux there is, when it is new enough.
async fn tmux_version() -> Result<String, Failure> {
    let missing = "install tmux 3.2 or later (Debian: apt install tmux, macOS: brew install tmux)";
    let binary = tmux::binary().map_err(|wrong| Failure::from(wrong).hint(missing))?;
    let shown = diff::shown_path(&binary);
    let text = super::tmux_says(&binary).await?;
    let Some(version) = Version::parse(text.trim_ascii()) else {
        let said = print::shown(text.trim_ascii());
        return Err(Failure::new(
            Exit::UNAVAILABLE,
            format!("{shown} -V says {said:?}, which is no version of tmux"),
        ));
    };
    let too_old = match version {
        // numbered like its system: 3.2's features came with OpenBSD 6.9
        Version::OpenBsd { major, minor } => (major, minor) < (6, 9),
        Version::Release { .. } | Version::Candidate { .. } | Version::Next { .. } | Version::Master => {
            version < OLDEST
        }
    };
    if too_old {
        return Err(Failure::new(
            Exit::UNAVAILABLE,
            format!("{shown} is tmux {version}; 3.2 or later is needed"),
        )
        .hint(missing));
    }
    Ok(format!("tmux {version} ({shown})"))
}

/// The user's home and settings folder.
pub(super) fn place() -> Result<Place, Failure> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = absolute("HOME").ok_or_else(|| {
        Failure::new(Exit::UNAVAILABLE, "HOME is not set to an absolute path")
            .hint("run it with HOME set, as a login shell has it")
    })?;
    let uid = rustix::process::geteuid().as_raw();
    Ok(Place { home, xdg_config: absolute("XDG_CONFIG_HOME"), uid })
}

fn what_to_start() -> Result<Start, Failure> {
    let set = |name: &&'static str| {
        std::env::var_os(name).filter(|value| !value.is_empty()).map(|value| (*name, value))
    };
    Ok(Start {
        program: program::path()?,
        environment: PASSED.iter().filter_map(set).collect(),
        path: std::env::var_os("PATH").filter(|value| !value.is_empty()),
    })
}
