//! Acts that are tested and done in one command inside tmux, so that nothing can change between the look and the act.
//!
//! Each is one `if-shell -F` on a pane's id. Its test holds the epoch of the server (its pid and start), and what else makes
//! the pane the one that is meant; ids start again at 0 in the next life of a server, so an id alone proves nothing. As its
//! last step it leaves a token on the pane and prints it: printed is the proof that the act was done, and after a lost
//! connection the token on the pane still is.
//!
//! No act puts a change of windows and a kill on one line (R1). Between two kills there must be one round trip, which is the
//! caller's to make: await the outcome of the first.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use bstr::{BString, ByteSlice};
use tmux_control::{Command, PaneId, SessionId, WindowId};

use super::client::ReplyError;
use super::{Identity, OneShot, Unanswered};
use crate::record::RecordId;

/// A value that may not stand in a test or on a pane.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    /// Not 1 to 256 of letters, digits and `_ . : -`.
    #[error("{0:?} cannot be the value of a pane option")]
    Value(String),
    /// Read as an id where it names a session.
    #[error("{0:?} cannot be the name of a session")]
    Session(String),
    /// No program with at least one argument.
    #[error("there is no program with an argument to run in the pane")]
    NoProgram,
    /// The system gives no random numbers.
    #[error("no random numbers")]
    NoRandom,
}

/// The options `ait` sets on panes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaneOption {
    /// `@aitask_record`: this pane is that record.
    Record,
    /// `@aitask_frozen`: this pane is that record's stand-in.
    Frozen,
    /// `@aitask_standin_ready`: the viewer has drawn.
    StandinReady,
    /// `@aitask_agent_session`: the provider's session id.
    AgentSession,
    /// `@aitask_respawn_token`: the proof of a guarded act.
    RespawnToken,
    /// `@aitask_restore_attempt`: a restore that is not tracked yet.
    RestoreAttempt,
}

impl PaneOption {
    /// All of them.
    pub const ALL: [PaneOption; 6] = [
        PaneOption::Record,
        PaneOption::Frozen,
        PaneOption::StandinReady,
        PaneOption::AgentSession,
        PaneOption::RespawnToken,
        PaneOption::RestoreAttempt,
    ];

    /// The option's name.
    pub fn name(self) -> &'static str {
        match self {
            PaneOption::Record => "@aitask_record",
            PaneOption::Frozen => "@aitask_frozen",
            PaneOption::StandinReady => "@aitask_standin_ready",
            PaneOption::AgentSession => "@aitask_agent_session",
            PaneOption::RespawnToken => "@aitask_respawn_token",
            PaneOption::RestoreAttempt => "@aitask_restore_attempt",
        }
    }
}

/// One life of a server, as a test in a command sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch {
    /// `#{pid}`.
    pub pid: i32,
    /// `#{start_time}`, unix seconds.
    pub started_at: i64,
}

impl From<&Identity> for Epoch {
    fn from(identity: &Identity) -> Epoch {
        Epoch { pid: identity.pid, started_at: identity.started_at }
    }
}

/// What must be true of a pane for an act to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    pane: PaneId,
    tests: Vec<String>,
}

impl Guard {
    /// This pane, in this life of the server.
    pub fn new(pane: PaneId, epoch: Epoch) -> Guard {
        // `if-shell` goes on without a target when the pane is gone: it must say itself that it is this one
        let tests = vec![
            format!("#{{==:#{{pane_id}},{pane}}}"),
            format!("#{{==:#{{pid}},{}}}", epoch.pid),
            format!("#{{==:#{{start_time}},{}}}", epoch.started_at),
        ];
        Guard { pane, tests }
    }

    /// And it is stamped so: `@aitask_record` or `@aitask_frozen` has this id.
    #[must_use]
    pub fn stamped(self, option: PaneOption, id: RecordId) -> Guard {
        self.and(format!("#{{==:#{{{}}},{id}}}", option.name()))
    }

    /// And this option is not set on it.
    #[must_use]
    pub fn without(self, option: PaneOption) -> Guard {
        self.and(format!("#{{==:#{{{}}},}}", option.name()))
    }

    /// And it is dead.
    #[must_use]
    pub fn dead(self) -> Guard {
        self.and("#{pane_dead}".to_owned())
    }

    /// And tmux started this process in it.
    #[must_use]
    pub fn process(self, pid: i32) -> Guard {
        self.and(format!("#{{==:#{{pane_pid}},{pid}}}"))
    }

    /// And nothing lives in it but this record's stand-in, or that process: it is dead, or was started as
    /// `… frozenagent --record <id>`. Marks survive whatever a user puts into a pane; they alone prove nothing of who lives there.
    #[must_use]
    fn vacant(self, id: RecordId, but: Option<i32>) -> Guard {
        let standin = format!("#{{m:*frozenagent*--record*{id}*,#{{pane_start_command}}}}");
        let mut test = format!("#{{||:#{{pane_dead}},{standin}}}");
        if let Some(pid) = but {
            test = format!("#{{||:#{{==:#{{pane_pid}},{pid}}},{test}}}");
        }
        self.and(test)
    }

    /// And it is neither dead nor closed to input: a paste into a dead pane ends tmux up to 3.3a, one into a closed pane is lost.
    #[must_use]
    fn takes_input(self) -> Guard {
        self.and("#{?pane_dead,0,1}".to_owned()).and("#{?pane_input_off,0,1}".to_owned())
    }

    /// And it is in no mode: there a paste is not bracketed, and a key is the mode's.
    #[must_use]
    pub fn in_no_mode(self) -> Guard {
        self.and("#{?pane_in_mode,0,1}".to_owned())
    }

    /// And a key that is sent to it reaches its program and no other: it is in no mode, and its window's panes are not synchronized.
    #[must_use]
    pub fn reached_alone(self) -> Guard {
        self.in_no_mode().and("#{?pane_synchronized,0,1}".to_owned())
    }

    /// And nobody reads what it writes through a pipe.
    #[must_use]
    pub fn unpiped(self) -> Guard {
        self.and("#{?pane_pipe,0,1}".to_owned())
    }

    fn and(mut self, test: String) -> Guard {
        self.tests.push(test);
        self
    }

    /// One format: `#{&&:…}` takes two, so they are nested.
    fn test(&self) -> String {
        all_of(&self.tests)
    }
}

/// One format that holds when all of these do.
pub(super) fn all_of(tests: &[String]) -> String {
    let mut tests = tests.iter().rev();
    let last = tests.next().cloned().unwrap_or_default();
    tests.fold(last, |all, test| format!("#{{&&:{test},{all}}}"))
}

/// A random token: the proof of one act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A fresh one, from the system's random source.
    ///
    /// # Errors
    /// [`BadValue::NoRandom`].
    pub fn random() -> Result<Token, BadValue> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|_| BadValue::NoRandom)?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// One made elsewhere: letters and digits.
    ///
    /// # Errors
    /// It holds anything else.
    pub fn new(text: &str) -> Result<Token, BadValue> {
        value(text).map(|text| Token(text.to_owned()))
    }

    /// As it stands on the pane.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What became of an act.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// Done, proven by its token.
    Done,
    /// The test did not hold; nothing was done.
    NotMet,
    /// tmux refused: the pane is gone, or the act itself failed.
    Refused(BString),
    /// No answer. It may have been done: read the token on the pane, or list the server.
    Unknown,
}

/// One guarded act, ready for a control client or a plain process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    guard: Guard,
    acts: Vec<Command>,
    /// Leaves the token on the pane.
    proof: Option<Command>,
    token: Token,
}

impl Dispatch {
    fn new(guard: Guard, act: Command, token: Token) -> Dispatch {
        let proof = set_option(guard.pane, PaneOption::RespawnToken, &token.0);
        Dispatch { guard, acts: vec![act], proof: Some(proof), token }
    }

    /// An act after which there is no pane to leave a token on.
    fn last(guard: Guard, act: Command, token: Token) -> Dispatch {
        Dispatch { guard, acts: vec![act], proof: None, token }
    }

    /// The same act with the printed token as its only proof, for a client that lists the server anew should it lose the
    /// connection: nothing is left on the pane.
    #[must_use]
    pub fn printed(mut self) -> Dispatch {
        self.proof = None;
        self
    }

    /// The token it leaves and prints.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// As one command.
    pub fn command(&self) -> Command {
        let mut acts = self.acts.clone();
        acts.extend(self.proof.clone());
        acts.push(print(&format!("T:{}", self.token.0)));
        Command::new("if-shell")
            .args(["-F", "-t", &self.guard.pane.to_string(), &self.guard.test()])
            .commands(acts)
            .commands([print(&format!("N:{}", self.token.0))])
    }

    /// The command after it that marks the end of its answers.
    pub(super) fn end_mark(&self) -> Command {
        print(&self.end_text())
    }

    /// What the mark prints.
    pub(super) fn end_text(&self) -> String {
        format!("E:{}", self.token.0)
    }

    /// Does it through a plain process.
    ///
    /// # Errors
    /// It cannot be written as a command, or the server could not be asked. A server that could not be reached may have done it.
    pub async fn run(&self, server: &OneShot) -> Result<Outcome, Unanswered> {
        self.run_told(server).await.map(|(outcome, _)| outcome)
    }

    /// The same with all that was printed.
    ///
    /// # Errors
    /// As [`Dispatch::run`].
    pub async fn run_told(&self, server: &OneShot) -> Result<(Outcome, Vec<u8>), Unanswered> {
        let line = self
            .command()
            .to_line()
            .map_err(|refused| Unanswered::Refused { words: refused.to_string().into() })?;
        // a line of tmux's own language, given as the body of a condition that holds
        let words = ["if-shell".into(), "-F".into(), "1".into(), OsString::from_vec(line.trim().to_vec())];
        match server.run(words).await {
            Ok(answer) => Ok((self.outcome(Ok(answer.clone())), answer)),
            Err(Unanswered::Refused { words }) => Ok((Outcome::Refused(words), Vec::new())),
            Err(other) => Err(other),
        }
    }

    /// What a reply says about it.
    pub fn outcome(&self, reply: Result<Vec<u8>, ReplyError>) -> Outcome {
        match reply {
            Ok(body) => {
                let printed = |letter: u8| {
                    body.lines().any(|line| {
                        line.split_first() == Some((&letter, format!(":{}", self.token.0).as_bytes()))
                    })
                };
                if printed(b'T') {
                    Outcome::Done
                } else if printed(b'N') {
                    Outcome::NotMet
                } else {
                    Outcome::Unknown
                }
            }
            Err(ReplyError::Refused(words)) => Outcome::Refused(words),
            Err(ReplyError::Unanswered | ReplyError::TooLong) => Outcome::Unknown,
        }
    }
}

/// What a pane shows, with its colours, wrapped lines joined, and at most so many lines of its history above it; `None` when
/// the guard does not hold. By a plain process: the text can hold anything, and no stream of ours reads it.
///
/// # Errors
/// No answer, or one longer than `server` takes.
pub async fn capture(server: &OneShot, guard: &Guard, history: u32) -> Result<Option<Vec<u8>>, Unanswered> {
    let token = Token::random().map_err(|error| Unanswered::Refused { words: error.to_string().into() })?;
    let pane = guard.pane.to_string();
    // a newline ends the words, so that text that guesses them is no other answer
    let refused = format!("N:{}", token.0);
    let act = format!("capture-pane -p -e -J -S -{history} -t {pane}");
    let otherwise = format!("display-message -p {refused}");
    let answer = server.run(["if-shell", "-F", "-t", &pane, &guard.test(), &act, &otherwise]).await?;
    Ok((answer.trim() != refused.as_bytes()).then_some(answer))
}

/// Closes a dead pane that carries this stamp.
pub fn kill_dead_pane(guard: Guard, id: RecordId, token: Token) -> Dispatch {
    kill_pane(guard.stamped(PaneOption::Record, id).dead(), token)
}

/// Closes the pane of a record's stand-in, living or dead; not one that carries its stamp and runs something else.
pub fn kill_standin(guard: Guard, id: RecordId, token: Token) -> Dispatch {
    kill_pane(guard.stamped(PaneOption::Frozen, id).vacant(id, None), token)
}

/// Closes a pane that is as the guard says; the guard must carry a stamp.
pub fn kill_pane(guard: Guard, token: Token) -> Dispatch {
    let act = Command::new("kill-pane").args(["-t", &guard.pane.to_string()]);
    Dispatch::last(guard, act, token)
}

/// Pastes a buffer into a pane that is as the guard says and lives, and deletes the buffer, line ends as they are. A
/// `text` is bracketed where the pane asks for it; a key must not be. `unchanged` keeps control bytes where tmux would rewrite them,
/// and is for a tmux that knows `-S`.
pub fn paste(guard: Guard, buffer: &str, text: bool, unchanged: bool, token: Token) -> Dispatch {
    let pane = guard.pane.to_string();
    let guard = guard.takes_input();
    let how = match (text, unchanged) {
        (true, true) => "-dprS",
        (true, false) => "-dpr",
        (false, true) => "-drS",
        (false, false) => "-dr",
    };
    let act = Command::new("paste-buffer").args([how, "-b", buffer, "-t", &pane]);
    Dispatch::last(guard, act, token)
}

/// Gives what a pane writes to a shell's command line, in which `#` and `%` stand for more than themselves. Never where another
/// pipe is: `guard` must be [`Guard::unpiped`].
pub fn pipe_pane(guard: Guard, line: &str, token: Token) -> Dispatch {
    let act = Command::new("pipe-pane").args(["-O", "-t", &guard.pane.to_string(), line]);
    Dispatch::last(guard, act, token)
}

/// Presses a key, by tmux's name for it, in a pane that is as the guard says and lives.
pub fn key(guard: Guard, name: &str, token: Token) -> Dispatch {
    let act = Command::new("send-keys").args(["-t", &guard.pane.to_string(), "--", name]);
    Dispatch::last(guard.takes_input(), act, token)
}

/// Puts a program into a pane in place of what is or was there, word by word and without a shell, in a folder if one is given.
///
/// # Errors
/// There is no program, or none with an argument: tmux gives a single word to a shell.
pub fn respawn(
    guard: Guard,
    program: &[&OsStr],
    folder: Option<&Path>,
    token: Token,
) -> Result<Dispatch, BadValue> {
    // one word alone would be read by a shell
    if program.len() < 2 { Err(BadValue::NoProgram) } else { Ok(respawn_act(guard, program, folder, token)) }
}

/// Puts the stand-in of a record into the pane that carries its stamp: `ait frozenagent --record <id>`. The pane must be dead,
/// or run a stand-in of the record or the process `over`, which is known to be its agent's.
pub fn respawn_standin(guard: Guard, id: RecordId, over: Option<i32>, ait: &Path, token: Token) -> Dispatch {
    let guard = guard.stamped(PaneOption::Frozen, id).vacant(id, over);
    let id = id.to_string();
    let pane = guard.pane;
    let mut dispatch = respawn_act(
        guard,
        &[ait.as_os_str(), OsStr::new("frozenagent"), OsStr::new("--record"), OsStr::new(&id)],
        None,
        token,
    );
    // what a restore began there is over with this
    dispatch.acts.push(unset_option(pane, PaneOption::RestoreAttempt.name()));
    dispatch
}

/// Puts a record's agent into the pane that carries its stand-in's stamp and is dead or runs it, marked as that of a restore
/// before it starts and kept when it ends. The answer has the new process, for [`process_told`].
///
/// # Errors
/// The mark is not one that is known to be harmless, or there is no program with an argument.
pub fn respawn_agent(
    guard: Guard,
    id: RecordId,
    mark: &str,
    program: &[&OsStr],
    folder: Option<&Path>,
    token: Token,
) -> Result<Dispatch, BadValue> {
    let pane = guard.pane;
    let mark = set_option(pane, PaneOption::RestoreAttempt, value(mark)?);
    let mut dispatch =
        respawn(guard.stamped(PaneOption::Frozen, id).vacant(id, None), program, folder, token)?;
    let keep = Command::new("set-option").args(["-p", "-t", &pane.to_string(), "remain-on-exit", "on"]);
    dispatch.acts.insert(0, keep);
    dispatch.acts.insert(0, mark);
    dispatch.acts.push(Command::new("display-message").args([
        "-p",
        "-t",
        &pane.to_string(),
        "P:#{pane_pid}",
    ]));
    Ok(dispatch)
}

/// The process of a pane, out of the answer to [`respawn_agent`].
pub fn process_told(answer: &[u8]) -> Option<i32> {
    let line = answer.lines().find_map(|line| line.strip_prefix(b"P:"))?;
    std::str::from_utf8(line).ok()?.parse().ok().filter(|pid| *pid > 0)
}

/// Makes a pane its record's again once the agent is back: the record's stamp on, those of stand-in and attempt off; with
/// `release` it may close when its process ends.
pub fn stamp_restored(guard: Guard, id: RecordId, release: bool, token: Token) -> Dispatch {
    let pane = guard.pane;
    let mut dispatch = Dispatch::new(guard, set_option(pane, PaneOption::Record, &id.to_string()), token);
    for option in [PaneOption::Frozen, PaneOption::StandinReady, PaneOption::RestoreAttempt] {
        dispatch.acts.push(unset_option(pane, option.name()));
    }
    if release {
        dispatch.acts.push(unset_option(pane, "remain-on-exit"));
    }
    dispatch
}

/// Sets one of our options on a pane.
///
/// # Errors
/// The value is not one that is known to be harmless.
pub fn set(guard: Guard, option: PaneOption, text: &str, token: Token) -> Result<Dispatch, BadValue> {
    let act = set_option(guard.pane, option, value(text)?);
    Ok(Dispatch::new(guard, act, token))
}

/// Takes one of our options off a pane.
pub fn unset(guard: Guard, option: PaneOption, token: Token) -> Dispatch {
    let act = unset_option(guard.pane, option.name());
    Dispatch::new(guard, act, token)
}

/// Keeps a pane when its process ends: `remain-on-exit on` on this pane alone.
pub fn keep_dead(guard: Guard, token: Token) -> Dispatch {
    let act = Command::new("set-option").args(["-p", "-t", &guard.pane.to_string(), "remain-on-exit", "on"]);
    Dispatch::new(guard, act, token)
}

/// Takes that back.
pub fn keep_dead_no_more(guard: Guard, token: Token) -> Dispatch {
    let act = unset_option(guard.pane, "remain-on-exit");
    Dispatch::new(guard, act, token)
}

/// Stamps a pane as the one that a record's stand-in is to take, and keeps it when its process ends.
pub fn stamp_frozen(guard: Guard, id: RecordId, token: Token) -> Dispatch {
    let pane = guard.pane;
    let stamp = set_option(pane, PaneOption::Frozen, &id.to_string());
    let mut dispatch = keep_dead(guard, token);
    // of an earlier stand-in: what comes now has drawn nothing yet
    dispatch.acts.insert(0, unset_option(pane, PaneOption::StandinReady.name()));
    dispatch.acts.push(stamp);
    dispatch
}

/// Takes that stamp off; with `release` the pane may close again when its process ends.
pub fn unstamp_frozen(guard: Guard, id: RecordId, release: bool, token: Token) -> Dispatch {
    let pane = guard.pane;
    let mut dispatch = unset(guard.stamped(PaneOption::Frozen, id), PaneOption::Frozen, token);
    if release {
        dispatch.acts.push(unset_option(pane, "remain-on-exit"));
    }
    dispatch
}

/// Sends a window that came to be in our session to one of the user's, behind its windows; selected there if it was selected
/// here. Fails when it is not in our session.
pub fn move_window_out(own: SessionId, window: WindowId, to: SessionId, selected: bool) -> Command {
    let command = Command::new("move-window");
    let command = if selected { command } else { command.arg("-d") };
    command.args(["-s", &format!("{own}:{window}"), "-t", &format!("{to}:")])
}

/// Sends a pane that was split into our own window to a window of its own in one of the user's sessions.
pub fn move_pane_out(pane: PaneId, to: SessionId, selected: bool) -> Command {
    let command = Command::new("break-pane");
    let command = if selected { command } else { command.arg("-d") };
    command.args(["-s", &pane.to_string(), "-t", &format!("{to}:")])
}

/// Sends a client of the user's that came to be in our session to one of theirs, its environment untouched.
pub fn switch_client_out(client: &[u8], to: SessionId) -> Command {
    Command::new("switch-client").arg("-E").arg("-c").arg(client).args(["-t", &to.to_string()])
}

/// Asks for the token on a pane; the answer is for [`is_token`]. A missing pane has none.
pub fn read_token(pane: PaneId) -> Command {
    Command::new("display-message").args(["-p", "-t", &pane.to_string(), "K:#{@aitask_respawn_token}"])
}

/// Whether an answer to [`read_token`] is this token.
pub fn is_token(answer: &[u8], token: &Token) -> bool {
    answer.lines().any(|line| line.strip_prefix(b"K:") == Some(token.0.as_bytes()))
}

/// Takes the token off a pane once it is read.
pub fn forget_token(pane: PaneId) -> Command {
    unset_option(pane, PaneOption::RespawnToken.name())
}

fn respawn_act(guard: Guard, program: &[&OsStr], folder: Option<&Path>, token: Token) -> Dispatch {
    let mut act = Command::new("respawn-pane").args(["-k", "-t", &guard.pane.to_string()]);
    if let Some(folder) = folder {
        act = act.arg("-c").arg(literal(folder.as_os_str().as_bytes()));
    }
    let act = act.arg("--").args(program.iter().map(|word| word.as_bytes()));
    // options outlive a respawn: whoever comes now has drawn nothing yet
    let unready = unset_option(guard.pane, PaneOption::StandinReady.name());
    let mut dispatch = Dispatch::new(guard, act, token);
    dispatch.acts.insert(0, unready);
    dispatch
}

fn set_option(pane: PaneId, option: PaneOption, text: &str) -> Command {
    Command::new("set-option").args(["-p", "-t", &pane.to_string(), option.name(), text])
}

fn unset_option(pane: PaneId, name: &str) -> Command {
    Command::new("set-option").args(["-p", "-u", "-q", "-t", &pane.to_string(), name])
}

fn print(text: &str) -> Command {
    Command::new("display-message").args(["-p", text])
}

/// Text that tmux takes as a format, so that it stays what it is. A run of `#` before `[` begins a style and is left alone.
pub(super) fn literal(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'#') {
        let (before, from) = rest.split_at(at);
        let run = from.iter().take_while(|byte| **byte == b'#').count();
        let times = if from.get(run) == Some(&b'[') { 1 } else { 2 };
        out.extend_from_slice(before);
        out.resize(out.len() + run * times, b'#');
        rest = from.get(run..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

pub(super) fn value(text: &str) -> Result<&str, BadValue> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-');
    let fits = (1..=256).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(plain);
    if fits { Ok(text) } else { Err(BadValue::Value(text.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard::new(PaneId(5), Epoch { pid: 12, started_at: 34 })
    }

    fn token() -> Token {
        Token::new("abc").unwrap()
    }

    fn line(command: &Command) -> String {
        String::from_utf8(command.to_line().unwrap()).unwrap()
    }

    #[test]
    fn a_kill_tests_epoch_stamp_and_death_in_the_same_command() {
        let dispatch = kill_dead_pane(guard(), "0a1b2c3d".parse().unwrap(), token());
        assert_eq!(
            line(&dispatch.command()),
            "if-shell -F -t %5 '#{&&:#{==:#{pane_id},%5},#{&&:#{==:#{pid},12},#{&&:#{==:#{start_time},34},\
             #{&&:#{==:#{@aitask_record},0a1b2c3d},#{pane_dead}}}}}' \
             'kill-pane -t %5 ; display-message -p T:abc' 'display-message -p N:abc'\n"
        );
    }

    #[test]
    fn a_respawn_runs_no_shell_and_reads_no_format() {
        let words = [OsStr::new("/opt/it's #{pid}/ait"), OsStr::new("frozenagent")];
        let dispatch = respawn(guard(), &words, Some(Path::new("/a #{b}")), token()).unwrap();
        let text = line(&dispatch.command());
        assert!(text.contains("##{b}"), "{text}");
        assert!(text.contains("set-option -p -t %5 @aitask_respawn_token abc"), "{text}");
        // what the one before was proven by is taken away in the same command
        let unready = text.find("set-option -p -u -q -t %5 @aitask_standin_ready").unwrap();
        assert!(unready < text.find("respawn-pane").unwrap(), "{text}");
        let printed = line(&dispatch.printed().command());
        assert!(printed.contains("@aitask_standin_ready") && printed.contains("respawn-pane"), "{printed}");
        assert!(!printed.contains("@aitask_respawn_token"), "{printed}");
        assert_eq!(respawn(guard(), &words[..1], None, token()), Err(BadValue::NoProgram));
    }

    #[test]
    fn nothing_but_plain_values_gets_onto_a_pane() {
        for bad in ["", "-u", "a b", "#{x}", "a'b", "a;", &"x".repeat(257)] {
            assert_eq!(
                set(guard(), PaneOption::AgentSession, bad, token()),
                Err(BadValue::Value(bad.to_owned()))
            );
        }
    }

    #[test]
    fn only_the_token_printed_is_done() {
        let dispatch = unset(guard(), PaneOption::Record, token());
        assert_eq!(dispatch.outcome(Ok(b"T:abc\n".to_vec())), Outcome::Done);
        assert_eq!(dispatch.outcome(Ok(b"x\nN:abc\n".to_vec())), Outcome::NotMet);
        assert_eq!(dispatch.outcome(Ok(b"T:abcd\nT:ab\n".to_vec())), Outcome::Unknown);
        assert_eq!(dispatch.outcome(Err(ReplyError::Unanswered)), Outcome::Unknown);
        let words: BString = "can't find pane: %5".into();
        assert_eq!(dispatch.outcome(Err(ReplyError::Refused(words.clone()))), Outcome::Refused(words));
    }

    #[test]
    fn tokens_do_not_repeat() {
        assert_ne!(Token::random().unwrap(), Token::random().unwrap());
        assert!(is_token(b"K:abc\n", &token()));
        assert!(!is_token(b"K:\n", &token()));
    }
}
