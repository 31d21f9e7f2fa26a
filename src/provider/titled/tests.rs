//! What providers' titles, screens and sequences say, held against what was recorded of the real programs in each phase
//! (`fixtures/providers/README.md`): nothing is told wrong, and what each source tells of each state is counted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use super::*;
use crate::turn::Turns;
use crate::turn::terminal::Scanner;

/// The phases, and what the agent is at in each.
const LABELS: &[(&str, State)] = &[
    ("startup", State::Waiting),
    ("idle", State::Waiting),
    ("working", State::Working),
    ("streaming", State::Working),
    ("queued", State::Working),
    ("permission", State::NeedsInput),
    ("permission-held", State::NeedsInput),
    ("question", State::NeedsInput),
    ("trust", State::NeedsInput),
    ("approved", State::Waiting),
    ("done", State::Waiting),
    ("interrupted", State::Waiting),
    ("error", State::Waiting),
    ("exit", State::Unknown),
];

/// Of how many recordings of a state each source tells it. It may become more, never less.
const TOLD: &[(&str, &str, State, usize, usize)] = &[
    ("claude", "screen", State::Working, 3, 3),
    ("claude", "screen", State::Waiting, 6, 6),
    ("claude", "screen", State::NeedsInput, 4, 4),
    ("codex", "screen", State::Working, 2, 3),
    ("codex", "screen", State::Waiting, 6, 6),
    ("codex", "screen", State::NeedsInput, 3, 3),
    ("codex", "osc7501", State::Working, 3, 3),
    ("codex", "osc7501", State::Waiting, 5, 5),
    ("codex", "osc7501", State::NeedsInput, 1, 2),
    ("codex", "title", State::Working, 3, 3),
    ("codex", "title", State::Waiting, 5, 5),
    ("codex", "title", State::NeedsInput, 2, 3),
    ("codex", "all", State::Working, 3, 3),
    ("codex", "all", State::Waiting, 6, 6),
    ("codex", "all", State::NeedsInput, 3, 3),
    ("claude", "all", State::Working, 3, 3),
    ("claude", "all", State::Waiting, 6, 6),
    ("claude", "all", State::NeedsInput, 4, 4),
];

fn at(ms: i64) -> Moment {
    Moment::from_millis(1_000_000 + ms)
}

fn recorded(name: &str) -> Option<Vec<u8>> {
    std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/providers").join(name)).ok()
}

/// The screen of a phase, and the title the pane had then.
fn screen(kind: &str, phase: &str) -> Option<String> {
    let name = |ending| format!("{kind}-{phase}.{ending}");
    let bytes = recorded(&name("ansi")).or_else(|| recorded(&name("txt")))?;
    Some(String::from_utf8(bytes).unwrap())
}

/// What each source says at the end of a phase: of a screen, and of the bytes that were written in it.
fn sources(kind: &str, phase: &str) -> BTreeMap<&'static str, State> {
    let catalog = Catalog::default();
    let mut turns = Turns::new("r");
    let mut told = BTreeMap::new();
    if let Some(screen) = screen(kind, phase) {
        let seen = catalog.look(kind, "", &screen).observation(at(0));
        told.insert("screen", seen.state.unwrap_or(State::Unknown));
        turns.observe(&seen);
    }
    if let Some(bytes) = recorded(&format!("{kind}-{phase}.raw")) {
        let mut pane = Pane::default();
        let mut ms = 0;
        Scanner::default().feed(&bytes, |sign| {
            ms += 1;
            if let Some(seen) = pane.sign(&catalog, kind, sign, at(ms)) {
                turns.observe(&seen);
            }
        });
        for (source, word) in [(Source::Osc7501, "osc7501"), (Source::Title, "title")] {
            told.insert(word, turns.claims.get(&source).map_or(State::Unknown, |claim| claim.state));
        }
    }
    if !told.is_empty() {
        told.insert("all", turns.view(at(2000)).state);
    }
    told
}

#[test]
fn every_recorded_phase_is_told_as_well_as_before() {
    const STATES: [State; 3] = [State::Working, State::Waiting, State::NeedsInput];
    let mut table = String::new();
    let mut wrong = Vec::new();
    let mut found: BTreeMap<(&str, &str, &str), (usize, usize)> = BTreeMap::new();
    for kind in ["claude", "codex"] {
        for means in ["screen", "title", "osc7501", "all"] {
            let seen: Vec<(&str, State, State)> = LABELS
                .iter()
                .filter_map(|(phase, label)| Some((*phase, *label, *sources(kind, phase).get(means)?)))
                .collect();
            for state in STATES {
                let labelled = seen.iter().filter(|(_, label, _)| *label == state).count();
                let said = seen.iter().filter(|(_, _, told)| *told == state).count();
                let right = seen.iter().filter(|(_, label, told)| *label == state && label == told).count();
                found.insert((kind, means, state.word()), (right, labelled));
                let share = |of: usize| {
                    if of == 0 { "   -".into() } else { format!("{:.2}", right as f64 / of as f64) }
                };
                writeln!(
                    table,
                    "{kind:7} {means:8} {:12} precision {} recall {} ({right} of {labelled})",
                    state.word(),
                    share(said),
                    share(labelled)
                )
                .unwrap();
            }
            let false_ones =
                seen.into_iter().filter(|(_, label, told)| *told != State::Unknown && told != label);
            wrong
                .extend(false_ones.map(|(phase, label, told)| {
                    format!("{kind}-{phase} by {means}: {told:?}, is {label:?}")
                }));
        }
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (kind, means, state, least, of) in TOLD {
        let (right, labelled) = found[&(*kind, *means, state.word())];
        assert!(
            right >= *least && labelled >= *of,
            "{kind} {means} {state:?}: {right} of {labelled}\n{table}"
        );
    }
}

#[test]
fn a_recorded_status_protocol_goes_through_its_states() {
    let bytes = recorded("claude-with-7501.raw").unwrap();
    let (catalog, mut pane, mut states) = (Catalog::default(), Pane::default(), Vec::new());
    Scanner::default().feed(&bytes, |sign| {
        let seen = pane.sign(&catalog, "claude", sign, at(0));
        if let Some(seen) = seen.filter(|seen| seen.source == Source::Osc7501) {
            states.push(seen.state.map_or("-", State::word));
        }
    });
    states.dedup();
    let expected = ["waiting", "working", "needs_input", "working", "waiting", "-"];
    let mut left = expected.iter().peekable();
    for state in &states {
        left.next_if(|next| *next == state);
    }
    assert_eq!(left.next(), None, "{states:?}");
}

#[test]
fn a_shell_and_another_program_do_not_speak_for_the_agent() {
    let catalog = Catalog::default();
    let mut turns = Turns::new("r");
    let mut pane = Pane::default();
    let mut hear = |bytes: &[u8]| {
        Scanner::default().feed(bytes, |sign| {
            if let Some(seen) = pane.sign(&catalog, "codex", sign, at(0)) {
                turns.observe(&seen);
            }
        });
        turns.view(at(0)).state
    };
    // a shell: a command runs, and it is the agent
    assert_eq!(hear(b"\x1b]133;A\x07$ \x1b]133;B\x07codex\x1b]133;C\x07"), State::Unknown);
    assert_eq!(hear(b"\x1b]133;D;0\x07"), State::Unknown);
    // an agent that runs in it, and a part of its own
    assert_eq!(hear(b"\x1b]7501;state=working:app=claude-code\x07"), State::Unknown);
    assert_eq!(hear(b"\x1b]7501;state=working:app=codex:id=a\x07"), State::Unknown);
    assert_eq!(hear(b"\x1b]7501;state=blocked:app=codex:kind=question\x07"), State::NeedsInput);
    // it left without a word: the shell shows its prompt
    assert_eq!(hear(b"\x1b]133;A\x07"), State::Unknown);
    assert_eq!(hear(b"\x1b]7501;state=done:app=codex\x07\x1b]133;A\x07"), State::Waiting);
    assert_eq!(hear(b"\x1bc"), State::Unknown);
    // a title without a mark says nothing until there was one
    assert_eq!(hear(b"\x1b]0;work\x07"), State::Unknown);
    assert_eq!(hear("\x1b]0;⠋ work\x07".as_bytes()), State::Working);
    assert_eq!(hear(b"\x1b]0;work\x07"), State::Waiting);
    assert_eq!(hear(b"\x1b]0;\x07"), State::Unknown);
    assert_eq!(hear(b"\x1b]9;4;3\x07"), State::Working);
    assert_eq!(hear(b"\x1b]9;4;4\x07"), State::Unknown, "held: nobody knows");
}

#[test]
fn titles_by_provider() {
    use State::{NeedsInput, Waiting, Working};
    use Titled::{Nothing, Says, Unmarked};
    for (kind, title, expected) in [
        ("codex", "⠋ Mock | work", Says(Working, true)),
        // as far as a subscription tells it
        ("codex", "[ ! ] Action Required | ", Says(NeedsInput, false)),
        ("codex", "[ . ] Action Required | ", Says(NeedsInput, false)),
        ("codex", "Mock | work", Unmarked),
        ("codex", "", Nothing),
        ("gemini", "◇  Ready (work)", Says(Waiting, false)),
        ("gemini", "✦  Working… (work)", Says(Working, false)),
        ("gemini", "✋  Action Required (wo", Says(NeedsInput, false)),
        // Claude's is the same whatever it does
        ("claude", "✳ Mock title", Nothing),
        ("opencode", "OC | title", Nothing),
        ("nobody", "⠋ x", Nothing),
    ] {
        assert_eq!(Catalog::default().titled(kind, title), expected, "{kind} {title:?}");
    }
}
