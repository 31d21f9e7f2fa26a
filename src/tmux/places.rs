//! A new pane for a program: beside another, in a new window, in a new session, on a server that is started for it.
//!
//! Each is one command that tests the server's life and makes the pane. What carries marks (new windows and sessions) gets
//! them in the same command; a split cannot, so the program must mark its pane itself before anything else. Names are given
//! as they are: neither format nor target.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use bstr::ByteSlice;
use tmux_control::{Command, PaneId, SessionId, WindowId};

use super::guarded::{BadValue, Epoch, PaneOption, all_of, literal, value};
use super::{OneShot, Unanswered};
use crate::record::RecordId;
use crate::world::plan::leaves;

/// The longest layout, in bytes: tmux writes none that is longer.
const LAYOUT: usize = 8192;
/// The size of a session whose size nobody knows.
const SIZE: (u32, u32) = (200, 50);
/// What is told of a new pane: pane, process, window, index, session, then the server.
const TOLD: &str =
    "N\t#{pane_id}\t#{pane_pid}\t#{window_id}\t#{window_index}\t#{session_id}\t#{pid}\t#{start_time}";

/// A program, and what its new pane is called and marked with.
#[derive(Debug, Clone)]
pub struct Tenant<'a> {
    /// The record whose agent it is.
    pub record: RecordId,
    /// The mark of its restore.
    pub mark: &'a str,
    /// The program and its arguments, no shell.
    pub program: &'a [&'a OsStr],
    /// Its folder.
    pub folder: &'a Path,
    /// The window's name.
    pub name: &'a str,
    /// Variables of a new session: with any, it is made by one plain `new-session`, as the earlier command line made it.
    pub variables: &'a [(&'static str, String)],
}

impl Tenant<'_> {
    /// Whether its place is made by one plain command, which tests nothing and marks nothing: its program marks its pane itself,
    /// and what is told says which life of the server it is on.
    #[must_use]
    pub fn is_plain(&self, place: &Where<'_>) -> bool {
        matches!(place, Where::Session { .. }) && !self.variables.is_empty()
    }
}

/// Where a new pane is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where<'a> {
    /// Beside this pane: behind it in the window's order, or before it.
    Beside {
        /// The pane.
        pane: PaneId,
        /// Whether the new one comes before it.
        before: bool,
    },
    /// In a new window at this free index.
    Window(SessionId, i64),
    /// In a new session of this free name, its window at this index if one is given, in columns and lines.
    Session {
        /// The name.
        name: &'a str,
        /// The index.
        index: Option<i64>,
        /// The size.
        size: Option<(u32, u32)>,
    },
}

/// A pane that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// The pane.
    pub pane: PaneId,
    /// Its process.
    pub pid: i32,
    /// Its window.
    pub window: WindowId,
    /// That window's index.
    pub index: i64,
    /// Its session.
    pub session: SessionId,
    /// The life of its server.
    pub epoch: Epoch,
}

/// No pane was made, or nobody knows.
#[derive(Debug, thiserror::Error)]
pub enum NotMade {
    /// A value that cannot be given to tmux.
    #[error(transparent)]
    Value(#[from] BadValue),
    /// The server is another life than the one that was looked at: nothing was done.
    #[error("the server was started anew meanwhile")]
    OtherLife,
    /// tmux refused, or did not answer: only a refusal says that nothing was made.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    /// It answered with something else than a pane.
    #[error("tmux did not say which pane it made")]
    Untold,
}

/// Makes a pane on a server of that life.
///
/// # Errors
/// [`NotMade`].
pub async fn make(
    server: &OneShot,
    epoch: Epoch,
    place: &Where<'_>,
    tenant: &Tenant<'_>,
) -> Result<Made, NotMade> {
    if tenant.is_plain(place) {
        return made(&server.run(plain(place, tenant)?).await?).ok_or(NotMade::Untold);
    }
    let tests =
        [format!("#{{==:#{{pid}},{}}}", epoch.pid), format!("#{{==:#{{start_time}},{}}}", epoch.started_at)];
    let line = Command::new("if-shell")
        .args(["-F", &all_of(&tests)])
        .commands(commands(place, tenant)?)
        .commands([Command::new("display-message").args(["-p", "O"])])
        .to_line()
        .map_err(|refused| Unanswered::Refused { words: refused.to_string().into() })?;
    let words = ["if-shell".into(), "-F".into(), "1".into(), OsString::from_vec(line.trim().to_vec())];
    let answer = server.run(words).await?;
    if answer.lines().any(|line| line == b"O") {
        return Err(NotMade::OtherLife);
    }
    made(&answer).ok_or(NotMade::Untold)
}

/// The words that make a session for the program on a server that they may start, and the pane it is in, for [`told`].
///
/// # Errors
/// [`NotMade`].
pub fn starting(place: &Where<'_>, tenant: &Tenant<'_>) -> Result<Vec<OsString>, NotMade> {
    if tenant.is_plain(place) {
        return Ok(plain(place, tenant)?);
    }
    // the first command may start a server, the second makes its session: as one line of tmux's own words
    let mut words: Vec<OsString> = vec!["start-server".into()];
    for command in commands(place, tenant)? {
        let line =
            command.to_line().map_err(|refused| Unanswered::Refused { words: refused.to_string().into() })?;
        words.extend([";", "if-shell", "-F", "1"].map(OsString::from));
        words.push(OsString::from_vec(line.trim().to_vec()));
    }
    Ok(words)
}

/// The pane that was made, out of what was printed.
///
/// # Errors
/// [`NotMade::Untold`].
pub fn told(answer: &[u8]) -> Result<Made, NotMade> {
    made(answer).ok_or(NotMade::Untold)
}

fn commands(place: &Where<'_>, tenant: &Tenant<'_>) -> Result<Vec<Command>, BadValue> {
    // one word alone would be read by a shell
    if tenant.program.len() < 2 {
        return Err(BadValue::NoProgram);
    }
    let folder = literal(tenant.folder.as_os_str().as_bytes());
    let program = || tenant.program.iter().map(|word| word.as_bytes());
    let begin =
        |name: &'static str| Command::new(name).args(["-d", "-P", "-F", TOLD]).arg("-c").arg(folder.clone());
    let (target, mut commands) = match place {
        Where::Beside { pane, before } => {
            let split = begin("split-window");
            let split = if *before { split.arg("-b") } else { split };
            return Ok(vec![split.args(["-t", &pane.to_string()]).arg("--").args(program())]);
        }
        Where::Window(session, index) => {
            let target = format!("{session}:{index}");
            (target.clone(), vec![begin("new-window").args(["-t", &target]).arg("--").args(program())])
        }
        Where::Session { name, index, size } => {
            if name.starts_with('$') {
                return Err(BadValue::Session((*name).to_owned()));
            }
            let (columns, lines) = size.unwrap_or(SIZE);
            let new = begin("new-session")
                .args(["-x", &columns.to_string(), "-y", &lines.to_string()])
                .arg("-s")
                .arg(literal(name.as_bytes()))
                .arg("--")
                .args(program());
            let target = format!("={name}:");
            let mut commands = vec![new];
            if let Some(index) = index {
                let to = format!("{target}{index}");
                // nothing to move when it is there already: that must not stop the rest
                let differs = format!("#{{!=:#{{window_index}},{index}}}");
                let there = Command::new("move-window").args(["-s", &target, "-t", &to]);
                commands
                    .push(Command::new("if-shell").args(["-F", "-t", &target, &differs]).commands([there]));
            }
            (target, commands)
        }
    };
    let set = |name: &str, text: &str| Command::new("set-option").args(["-p", "-t", &target, name, text]);
    commands.push(set(PaneOption::RestoreAttempt.name(), value(tenant.mark)?));
    commands.push(set(PaneOption::Frozen.name(), &tenant.record.to_string()));
    commands.push(set("remain-on-exit", "on"));
    commands.push(rename(&target, tenant.name));
    commands.push(Command::new("display-message").args(["-p", "-t", &target, TOLD]));
    Ok(commands)
}

/// `new-session -d -s NAME -c FOLDER -e NAME=VALUE … -P -F … -- PROGRAM …`, word by word.
fn plain(place: &Where<'_>, tenant: &Tenant<'_>) -> Result<Vec<OsString>, BadValue> {
    let (Where::Session { name, .. }, 2..) = (place, tenant.program.len()) else {
        return Err(BadValue::NoProgram);
    };
    let mut words: Vec<OsString> = ["new-session", "-d", "-s"].map(OsString::from).into();
    words.push(OsString::from_vec(literal(name.as_bytes())));
    words.push("-c".into());
    words.push(OsString::from_vec(literal(tenant.folder.as_os_str().as_bytes())));
    for (name, value) in tenant.variables {
        words.extend(["-e".into(), OsString::from(format!("{name}={value}"))]);
    }
    words.extend(["-P", "-F", TOLD, "--"].map(OsString::from));
    words.extend(tenant.program.iter().map(|word| (*word).to_owned()));
    Ok(words.into_iter().map(whole).collect())
}

/// A word that tmux does not take for the end of a command.
fn whole(word: OsString) -> OsString {
    let mut bytes = word.into_vec();
    if bytes.last() == Some(&b';') {
        bytes.insert(bytes.len() - 1, b'\\');
    }
    OsString::from_vec(bytes)
}

/// The last pane told of: a window may have moved since the first.
fn made(answer: &[u8]) -> Option<Made> {
    let line = answer.lines().filter_map(|line| line.strip_prefix(b"N\t")).next_back()?;
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
    let [pane, pid, window, index, session, server, started_at] = fields[..] else { return None };
    let number = |digits: &[u8]| digits.to_str().ok()?.parse::<i64>().ok();
    Some(Made {
        pane: PaneId::parse(pane)?,
        pid: i32::try_from(number(pid)?).ok().filter(|pid| *pid > 0)?,
        window: WindowId::parse(window)?,
        index: number(index)?,
        session: SessionId::parse(session)?,
        epoch: Epoch { pid: i32::try_from(number(server)?).ok()?, started_at: number(started_at)? },
    })
}

/// Names a window, the text taken as it is.
#[must_use]
pub fn rename(window: &str, name: &str) -> Command {
    Command::new("rename-window").args(["-t", window]).arg("--").arg(literal(name.as_bytes()))
}

/// Lays a recorded layout over a window that has as many panes as it names. It may be refused: the window stays as it is.
#[must_use]
pub fn lay_out(window: WindowId, layout: &str) -> Option<Command> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b",{}[]".contains(&byte);
    let panes = leaves(layout.as_bytes()).len();
    let fits = panes > 1 && layout.len() < LAYOUT && layout.bytes().all(plain);
    let window = window.to_string();
    let test = format!("#{{&&:#{{==:#{{window_id}},{window}}},#{{==:#{{window_panes}},{panes}}}}}");
    fits.then(|| {
        Command::new("if-shell")
            .args(["-F", "-t", &window, &test])
            .commands([Command::new("select-layout").args(["-t", &window, layout])])
    })
}

/// The columns and lines of a window, by its layout: `csum,200x50,0,0,…`.
#[must_use]
pub fn size_of(layout: &str) -> Option<(u32, u32)> {
    let (columns, lines) = layout.split(',').nth(1)?.split_once('x')?;
    Some((columns.parse().ok()?, lines.parse().ok()?)).filter(|(columns, lines)| *columns > 0 && *lines > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_says_the_size() {
        assert_eq!(size_of("b25d,200x50,0,0,1"), Some((200, 50)));
        assert_eq!(size_of("b25d,80x24,0,0{40x24,0,0,1,39x24,41,0,2}"), Some((80, 24)));
        for odd in ["", "x", "b25d,0x50,0,0", "b25d,ax50"] {
            assert_eq!(size_of(odd), None, "{odd}");
        }
    }
}
