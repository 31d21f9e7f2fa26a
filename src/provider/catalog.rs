//! Every provider there is, the built-in ones and the user's, by the name records carry.

use serde_json::Value;

use super::build::{NoLaunch, NoResume, Recorded, fill, kept_options, shown};
use super::custom::{Custom, Refused, may_be_kept};
use super::ids::Shape;
use super::meaning::{Meaning, as_claude, noise};
use super::screen::Screen;
use super::signs::{Phase, Sight};
use super::spec::{Look, OPTIONS, Spec};
use super::store::Store;
use super::table::ALWAYS_KEPT;
use super::{Program, Provider, arguments, argv, recognise};

/// The providers. The default has the built-in ones only.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    customs: Vec<Custom>,
    /// Variables the user wants kept with every agent.
    keep: Vec<String>,
}

/// One of them.
enum Known<'a> {
    BuiltIn(&'static Spec),
    Custom(&'a Custom),
}

impl Catalog {
    /// The built-in providers and these.
    ///
    /// # Errors
    ///
    /// [`Refused`] for the first one that cannot be used, or whose name or program another one has.
    pub fn new(customs: Vec<Custom>) -> Result<Self, Refused> {
        for (at, custom) in customs.iter().enumerate() {
            custom.check()?;
            if customs[..at].iter().any(|other| other.name == custom.name) {
                return Err(Refused::NameTaken(custom.name.clone()));
            }
            let taken = |binary: &&String| customs[..at].iter().any(|other| other.binaries.contains(binary));
            if let Some(binary) = custom.binaries.iter().find(taken) {
                return Err(Refused::BadProgram(binary.clone()));
            }
        }
        Ok(Self { customs, keep: Vec::new() })
    }

    /// The same, with these variables kept of every agent, whoever's it is; what may not be kept is left out.
    #[must_use]
    pub fn keeping(self, names: &[String]) -> Self {
        Self { keep: names.iter().filter(|name| may_be_kept(name)).cloned().collect(), ..self }
    }

    fn known(&self, kind: &str) -> Option<Known<'_>> {
        if let Some(provider) = Provider::named(kind) {
            return Some(Known::BuiltIn(provider.spec()));
        }
        self.customs.iter().find(|custom| custom.name == kind).map(Known::Custom)
    }

    /// The names of all providers.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        let built_in = Provider::all().map(|provider| -> &str { provider.name() });
        built_in.chain(self.customs.iter().map(|custom| custom.name.as_str()))
    }

    /// The name of the provider this process is an agent of, if it is one.
    #[must_use]
    pub fn recognise(&self, program: Program<'_>) -> Option<&str> {
        if let Some(provider) = recognise(program) {
            return Some(provider.name());
        }
        self.customs
            .iter()
            .find(|custom| custom.binaries.iter().any(|binary| super::runs(program, binary.as_bytes())))
            .map(|custom| custom.name.as_str())
    }

    /// The provider of whose program the recorded arguments are, where that is another one than `kind`. The program of one the user
    /// described may run a built-in one's.
    #[must_use]
    pub fn other_than(&self, kind: &str, recorded: Recorded<'_>) -> Option<&str> {
        if matches!(self.known(kind), Some(Known::Custom(_))) {
            return None;
        }
        let argv: Vec<Vec<u8>> = recorded.argv.iter().map(|word| word.as_bytes().to_vec()).collect();
        self.recognise(Program { exe: recorded.bin.as_bytes(), argv: &argv }).filter(|name| *name != kind)
    }

    /// Whether its screen or its title shows when its prompt line is open.
    #[must_use]
    pub fn shows_ready(&self, kind: &str) -> bool {
        match self.known(kind) {
            Some(Known::BuiltIn(spec)) => match &spec.look {
                Look::Words(table) => table.shows(Phase::Ready),
                Look::Own(_) => true,
            },
            Some(Known::Custom(_)) | None => false,
        }
    }

    /// The file names of its program, the current one first; none when the provider is not known.
    #[must_use]
    pub fn binaries(&self, kind: &str) -> Vec<&str> {
        match self.known(kind) {
            Some(Known::BuiltIn(spec)) => spec.binaries.to_vec(),
            Some(Known::Custom(custom)) => custom.binaries.iter().map(String::as_str).collect(),
            None => Vec::new(),
        }
    }

    /// Whether a new conversation can be given an id of our choice.
    #[must_use]
    pub fn chooses_id(&self, kind: &str) -> bool {
        match self.known(kind) {
            Some(Known::BuiltIn(spec)) => !spec.launch.chosen.is_empty(),
            Some(Known::Custom(custom)) => custom.chooses_id(),
            None => false,
        }
    }

    /// Whether this is a whole id of the provider's.
    #[must_use]
    pub fn fits(&self, kind: &str, session_id: &str) -> bool {
        match self.known(kind) {
            Some(Known::BuiltIn(spec)) => spec.ids.fits(session_id),
            Some(Known::Custom(_)) => Shape::Word.fits(session_id),
            None => false,
        }
    }

    /// Whether a resume finds the conversation only from the folder it is filed under. Yes, where nothing is known.
    #[must_use]
    pub fn needs_cwd(&self, kind: &str) -> bool {
        match self.known(kind) {
            Some(Known::BuiltIn(spec)) => spec.needs_cwd,
            Some(Known::Custom(custom)) => custom.needs_cwd,
            None => true,
        }
    }

    /// The variables of an agent's environment that a record keeps: those of its provider, and those the user wants kept
    /// with every agent. No secret.
    #[must_use]
    pub fn kept_variables(&self, kind: &str) -> Vec<&str> {
        let mut names = self.own_variables(kind);
        names.extend(self.keep.iter().map(String::as_str));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The variables that are looked for at each agent of this provider, so that one that is not recorded was not set.
    #[must_use]
    pub fn own_variables(&self, kind: &str) -> Vec<&str> {
        let own: Vec<&str> = match self.known(kind) {
            Some(Known::BuiltIn(spec)) => spec.variables.to_vec(),
            Some(Known::Custom(custom)) => custom.keep.iter().map(String::as_str).collect(),
            None => Vec::new(),
        };
        ALWAYS_KEPT.iter().copied().chain(own).collect()
    }

    /// The id of the conversation an agent runs, when its arguments carry exactly one and it is whole.
    #[must_use]
    pub fn session_id(&self, kind: &str, argv: &[Vec<u8>]) -> Option<String> {
        match self.known(kind)? {
            Known::BuiltIn(spec) => argv::session_id(spec.provider, argv),
            Known::Custom(custom) => custom.session_id(argv),
        }
    }

    /// The arguments that may be kept in a record; no prompt, no secret, nothing long.
    #[must_use]
    pub fn without_text(&self, kind: &str, argv: &[Vec<u8>]) -> Vec<Vec<u8>> {
        argv::without_text(Provider::named(kind), argv)
    }

    /// Where a built-in provider keeps its conversations.
    #[must_use]
    pub fn store(&self, kind: &str) -> Option<Store> {
        match self.known(kind)? {
            Known::BuiltIn(spec) => Some(spec.store),
            Known::Custom(_) => None,
        }
    }

    /// The folder in which the user's own provider keeps its conversations: absolute or from `~/`.
    #[must_use]
    pub fn folder(&self, kind: &str) -> Option<&str> {
        match self.known(kind)? {
            Known::BuiltIn(_) => None,
            Known::Custom(custom) => Some(custom.store.as_str()).filter(|folder| !folder.is_empty()),
        }
    }

    /// The hook events to ask for, in the words of the provider's settings.
    #[must_use]
    pub fn hook_events(&self, kind: &str) -> &'static [&'static str] {
        match self.known(kind) {
            Some(Known::BuiltIn(spec)) => spec.events,
            Some(Known::Custom(_)) | None => &[],
        }
    }

    /// What a hook event with this payload says; noise when the provider is not known. The user's own speak as Claude Code
    /// does.
    #[must_use]
    pub fn hook_meaning(&self, kind: &str, event: &str, payload: &Value) -> Meaning {
        match self.known(kind) {
            Some(Known::BuiltIn(spec)) => (spec.meaning)(event, payload),
            Some(Known::Custom(_)) => as_claude(event, payload),
            None => noise(),
        }
    }

    /// What the pane's title and its screen show. The screen comes with its colours, as `capture-pane -e` writes it.
    #[must_use]
    pub fn look(&self, kind: &str, title: &str, screen: &str) -> Sight {
        match self.known(kind) {
            Some(Known::BuiltIn(spec)) => {
                let screen = Screen::read(screen);
                match &spec.look {
                    Look::Words(table) => table.look(title, &screen),
                    Look::Own(look) => look(title, &screen),
                }
            }
            Some(Known::Custom(_)) | None => Sight::UNKNOWN,
        }
    }

    /// The arguments that bring exactly this conversation back, the program's name first.
    ///
    /// Of the arguments the agent ran with, known options (its model, its permissions …) come along.
    ///
    /// # Errors
    ///
    /// [`NoResume`] when the id is missing or not whole, or the program has no exact way.
    pub fn resume_argv(
        &self,
        kind: &str,
        session_id: &str,
        recorded: Recorded<'_>,
    ) -> Result<Vec<String>, NoResume> {
        let known = self.known(kind).ok_or_else(|| NoResume::UnknownProvider(shown(kind)))?;
        let supported = match &known {
            Known::BuiltIn(spec) => !spec.resume.is_empty(),
            Known::Custom(custom) => !custom.resume_words().is_empty(),
        };
        if !supported {
            return Err(NoResume::Unsupported(kind.to_owned()));
        }
        if session_id.is_empty() {
            return Err(NoResume::NoSession);
        }
        if !self.fits(kind, session_id) {
            return Err(NoResume::BadSession { provider: kind.to_owned(), id: shown(session_id) });
        }
        Ok(match known {
            Known::BuiltIn(spec) => {
                fill(name(spec, recorded), after_first(spec.resume), session_id, &options(spec, recorded))
            }
            Known::Custom(custom) => {
                let words = custom.resume_words().iter().map(String::as_str);
                fill(custom.program(), words.filter(|word| *word != OPTIONS), session_id, &[])
            }
        })
    }

    /// The arguments that begin a new conversation, with this id when one is chosen, the program's name first.
    ///
    /// # Errors
    ///
    /// [`NoLaunch`] when an id is chosen that the program does not take, or that is none.
    pub fn launch_argv(
        &self,
        kind: &str,
        chosen: Option<&str>,
        recorded: Recorded<'_>,
    ) -> Result<Vec<String>, NoLaunch> {
        let known = self.known(kind).ok_or_else(|| NoLaunch::UnknownProvider(shown(kind)))?;
        if let Some(id) = chosen {
            if !self.chooses_id(kind) {
                return Err(NoLaunch::IdNotTaken(kind.to_owned()));
            }
            if !self.fits(kind, id) {
                return Err(NoLaunch::BadSession { provider: kind.to_owned(), id: shown(id) });
            }
        }
        let id = chosen.unwrap_or_default();
        Ok(match known {
            Known::BuiltIn(spec) => {
                let words = if chosen.is_some() { spec.launch.chosen } else { spec.launch.plain };
                fill(name(spec, recorded), after_first(words), id, &options(spec, recorded))
            }
            Known::Custom(custom) => {
                // a list made for an id is of no use without one
                let words = if custom.chooses_id() && chosen.is_none() { &[] } else { custom.launch_words() };
                let words = words.iter().map(String::as_str).filter(|word| *word != OPTIONS);
                fill(custom.program(), words, id, &[])
            }
        })
    }
}

fn after_first(words: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    words.iter().skip(1).copied()
}

/// The name the agent was run by, when it is one of the provider's.
fn name<'a>(spec: &'static Spec, recorded: Recorded<'a>) -> &'a str {
    let file = recorded.bin.rsplit('/').next().unwrap_or(recorded.bin);
    let default = spec.binaries.first().copied().unwrap_or(spec.name);
    if spec.binaries.contains(&file) { file } else { default }
}

/// The options of the recorded agent that are given to it again.
fn options(spec: &Spec, recorded: Recorded<'_>) -> Vec<String> {
    let argv: Vec<Vec<u8>> = recorded.argv.iter().map(|word| word.as_bytes().to_vec()).collect();
    match arguments(Program { exe: recorded.bin.as_bytes(), argv: &argv }) {
        Some((provider, rest)) if provider == spec.provider => kept_options(spec.kept, rest),
        _ => Vec::new(),
    }
}
