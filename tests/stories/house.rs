//! The house rules that a machine can read: which module may know which, and what no file holds.
//!
//! `src/lib.rs` tells the map; these stories read it from there and hold every file against it. Each check is also shown
//! a text that breaks it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Show may use do and decide, do may use decide, decide uses nothing of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stanza {
    Decide,
    Do,
    Show,
}

/// A source file, its comments and its own tests cut off.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    whole: String,
    code: String,
    /// Only tests are built from it.
    is_test: bool,
}

impl Source {
    fn new(path: impl Into<PathBuf>, whole: &str) -> Source {
        let mut code = String::new();
        let mut lines = whole.lines().peekable();
        while let Some(line) = lines.next() {
            if line.trim() == "#[cfg(test)]" {
                match lines.next_if(|next| test_module(next).is_some()) {
                    Some(_) => continue,
                    None => break,
                }
            }
            code += if line.trim_start().starts_with("//") { "" } else { line };
            code.push('\n');
        }
        Source { path: path.into(), whole: whole.to_owned(), code, is_test: false }
    }

    /// The files that only tests are built from, as this one declares them: `#[cfg(test)]`, then `mod laws;`.
    fn tests(&self) -> Vec<PathBuf> {
        let lines: Vec<&str> = self.whole.lines().collect();
        let declared = lines.windows(2).filter(|pair| pair[0].trim() == "#[cfg(test)]");
        let folder = match self.path.file_stem().and_then(|stem| stem.to_str()) {
            Some("mod" | "lib" | "main") | None => self.path.parent().unwrap().to_owned(),
            Some(stem) => self.path.with_file_name(stem),
        };
        declared
            .filter_map(|pair| test_module(pair[1]))
            .map(|name| folder.join(format!("{name}.rs")))
            .collect()
    }

    /// The top module it belongs to: `store` of `src/store/lock.rs`.
    fn module(&self) -> Option<String> {
        let below = self.path.strip_prefix("src").ok()?;
        let first = below.components().next()?.as_os_str().to_string_lossy().into_owned();
        let name = first.strip_suffix(".rs").unwrap_or(&first).to_owned();
        (name != "lib" && name != "main").then_some(name)
    }
}

/// The name in `mod name;`.
fn test_module(line: &str) -> Option<&str> {
    line.trim().rsplit_once("mod ")?.1.strip_suffix(';')
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(below: &str) -> Vec<Source> {
    let mut folders = vec![root().join(below)];
    let mut all = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                all.push(Source::new(path.strip_prefix(root()).unwrap(), &text));
            }
        }
    }
    let tests: Vec<PathBuf> = all.iter().flat_map(Source::tests).collect();
    for source in &mut all {
        if tests.contains(&source.path) {
            source.is_test = true;
            source.code.clear();
        }
    }
    all.sort_by(|one, other| one.path.cmp(&other.path));
    all
}

/// The map as `lib.rs` tells it: the stanza of each module.
fn map(lib: &str) -> BTreeMap<String, Stanza> {
    let mut stanza = None;
    let mut map = BTreeMap::new();
    for line in lib.lines().map(str::trim) {
        match line {
            "// decide" => stanza = Some(Stanza::Decide),
            "// do" => stanza = Some(Stanza::Do),
            "// show" => stanza = Some(Stanza::Show),
            _ => {
                let name = line.strip_prefix("pub mod ").or_else(|| line.strip_prefix("mod "));
                if let Some(name) = name.and_then(|name| name.strip_suffix(';')) {
                    map.insert(name.to_owned(), stanza.expect("a module stands below a stanza"));
                }
            }
        }
    }
    map
}

/// Where a path climbs out of the file's top module: behind as many `super::` as the file lies deep.
fn climbs(source: &Source) -> Vec<&str> {
    let below = source.path.strip_prefix("src").unwrap_or(&source.path);
    let depth = below.components().count() - usize::from(below.ends_with("mod.rs"));
    let climb = "super::".repeat(depth.max(1));
    let at = source.code.match_indices(&climb).filter(|(at, _)| !source.code[..*at].ends_with("super::"));
    at.map(|(at, climb)| &source.code[at + climb.len()..]).collect()
}

/// The modules a file names as `crate::…`, and those of the map that it climbs to.
fn named(map: &BTreeMap<String, Stanza>, source: &Source) -> BTreeSet<String> {
    let down = source.code.match_indices("crate::").map(|(at, start)| &source.code[at + start.len()..]);
    let mut names = first_words(down);
    // a module inside the file climbs to the file itself, and names what is no module
    names.extend(first_words(climbs(source).into_iter()).into_iter().filter(|name| map.contains_key(name)));
    names
}

/// The first word of each path, groups (`{a, b::c}`) included.
fn first_words<'a>(paths: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for rest in paths {
        if let Some(group) = rest.strip_prefix('{') {
            let (mut depth, mut word, mut first) = (1, String::new(), true);
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 1 => first = true,
                    c if first && (c.is_alphanumeric() || c == '_') => word.push(c),
                    c if c.is_whitespace() => continue,
                    _ => first = first && word.is_empty(),
                }
                if (!first || c == ',' || depth == 0) && !word.is_empty() {
                    names.insert(std::mem::take(&mut word));
                    first = c == ',';
                }
                if depth == 0 {
                    break;
                }
            }
        } else {
            names.insert(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    names
}

fn against_the_map(map: &BTreeMap<String, Stanza>, sources: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources {
        let Some(module) = source.module() else { continue };
        let Some(own) = map.get(&module) else {
            wrong.push(format!("{}: `{module}` is not in the map of src/lib.rs", source.path.display()));
            continue;
        };
        for name in named(map, source).into_iter().filter(|name| *name != module) {
            match map.get(&name) {
                Some(other) if other > own => {
                    wrong.push(format!(
                        "{}: {own:?} `{module}` knows {other:?} `{name}`",
                        source.path.display()
                    ));
                }
                Some(_) => {
                    uses.entry(module.clone()).or_default().insert(name);
                }
                None => wrong.push(format!("{}: `crate::{name}` is no module", source.path.display())),
            }
        }
    }
    wrong.extend(loops(&uses));
    wrong
}

/// Modules that know each other in a circle.
fn loops(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for start in uses.keys() {
        let mut seen: BTreeSet<&String> = BTreeSet::new();
        let mut next: Vec<&String> = uses.get(start).into_iter().flatten().collect();
        while let Some(module) = next.pop() {
            if module == start {
                wrong.push(format!("`{start}` knows itself through others: {seen:?}"));
                break;
            }
            if seen.insert(module) {
                next.extend(uses.get(module).into_iter().flatten());
            }
        }
    }
    wrong
}

#[test]
fn modules_know_each_other_in_one_direction() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let map = map(&lib);
    assert!(map.values().any(|stanza| *stanza == Stanza::Do), "the map was read: {map:?}");
    let wrong = against_the_map(&map, &sources("src"));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_wrong_direction_is_seen() {
    let map =
        map("// decide\npub mod record;\npub mod world;\n// do\npub mod store;\n// show\npub mod cli;\n");
    for (path, text, complaint) in [
        ("src/record/mod.rs", "use crate::store::Store;", "knows Do `store`"),
        ("src/store.rs", "fn f() { crate::cli::main() }", "knows Show `cli`"),
        ("src/record.rs", "use crate::{world::World, cli};", "knows Show `cli`"),
        ("src/record/mod.rs", "use super::store::Store;", "knows Do `store`"),
        ("src/record/a/b.rs", "use super::super::super::{record, store};", "knows Do `store`"),
        ("src/extra.rs", "", "not in the map"),
        ("src/cli/mod.rs", "use crate::nothing::X;", "is no module"),
    ] {
        let wrong = against_the_map(&map, &[Source::new(path, text)]);
        assert!(wrong.len() == 1 && wrong[0].contains(complaint), "{path}: {wrong:?}");
    }
    let circle = [
        Source::new("src/record.rs", "use crate::world::{self, World};"),
        Source::new("src/world.rs", "use crate::{record::Id, world::X};"),
    ];
    assert_eq!(against_the_map(&map, &circle).len(), 2);
    let fine = [
        Source::new("src/cli/mod.rs", "use crate::{record, store::{Store, lock}, world};"),
        Source::new(
            "src/store.rs",
            "// crate::cli is not for us\n#[cfg(test)]\nmod tests { use crate::cli; }",
        ),
        Source::new("src/record/a/b.rs", "use super::super::store_of; use super::cli;"),
    ];
    assert!(against_the_map(&map, &fine).is_empty());
}

/// What a decide module may not even name.
const EFFECTS: &[&str] = &[
    "tokio",
    "std::fs",
    "std::env",
    "std::process::",
    "std::thread",
    "std::net",
    "async fn",
    ".await",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "rustix",
    "nix::",
    "tracing",
    "println!",
    "getrandom",
    "uuid",
    "static mut",
    "thread_local!",
];

fn effects(map: &BTreeMap<String, Stanza>, sources: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources {
        let decides = source.module().is_some_and(|module| map.get(&module) == Some(&Stanza::Decide));
        for effect in EFFECTS.iter().filter(|_| decides) {
            if source.code.contains(effect) {
                wrong.push(format!("{}: a decide module names {effect}", source.path.display()));
            }
        }
    }
    wrong
}

#[test]
fn decide_modules_are_pure() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let map = map(&lib);
    let wrong = effects(&map, &sources("src"));
    assert!(wrong.is_empty(), "{wrong:#?}");
    // the clippy ban is lifted for nobody who decides
    let mut lifted = false;
    for line in lib.lines().map(str::trim) {
        if line.starts_with("pub mod ") {
            let name = line.trim_start_matches("pub mod ").trim_end_matches(';');
            assert!(!lifted || map[name] != Stanza::Decide, "the ban on effects is lifted for `{name}`");
            lifted = false;
        } else if line.starts_with("#[expect") || line.starts_with("clippy::disallowed_methods") {
            lifted = true;
        }
    }
}

#[test]
fn the_readme_tells_the_same_map() {
    let lib = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for (module, stanza) in map(&lib) {
        let begin = format!("| {}", format!("{stanza:?}").to_lowercase());
        let row = readme.lines().find(|line| line.starts_with(&begin)).expect("a row for each stanza");
        assert!(row.contains(&format!("`{module}` ")), "README.md: `{module}` is missing under {stanza:?}");
    }
}

#[test]
fn an_effect_in_a_decide_module_is_seen() {
    let map = map("// decide\npub mod record;\n// do\npub mod store;\n");
    let text = "fn f() { let _ = std::env::var(\"X\"); }";
    assert_eq!(effects(&map, &[Source::new("src/record/x.rs", text)]).len(), 1);
    let log = "fn f() { tracing::info!(\"said\"); }";
    assert_eq!(effects(&map, &[Source::new("src/record/x.rs", log)]).len(), 1);
    assert_eq!(effects(&map, &[Source::new("src/store/x.rs", text)]).len(), 0);
}

/// What no code of ours holds, and what it says instead.
const BANNED: &[(&str, &str)] = &[
    (".unwrap()", "give the error a type"),
    ("panic!(", "give the error a type"),
    ("todo!(", "finish it"),
    ("unimplemented!(", "finish it"),
    ("unsafe {", "there is a safe way"),
    ("unsafe fn", "there is a safe way"),
    ("unsafe impl", "there is a safe way"),
    ("thread::sleep", "wait for a state"),
    ("time::sleep(", "wait for a state, with a deadline"),
    ("#[allow(", "#[expect(lint, reason)]"),
    ("anyhow", "an enum per module"),
    ("dbg!(", "tracing"),
];

/// Words that say nothing.
const EMPTY_WORDS: &[&str] = &["manager", "handler", "helper", "util", "utils", "common", "misc", "types"];

/// Words of unfinished work.
const UNFINISHED: &[&str] = &["TODO", "FIXME"];

/// Where a ban does not hold, and why not.
const SPARED: &[(&str, &str, &str)] = &[
    ("src/cli/demo", "time::sleep(", "a show has a pace"),
    ("src/driver", "time::sleep(", "the loop keeps the deadlines of the machine"),
    ("src/lifecycle/paste.rs", "time::sleep(", "a program tells nobody when it has taken a text"),
    (
        "src/store/turns",
        "thread::sleep",
        "a lock that is waited for only so long tells nobody when it is free",
    ),
    ("src/store/lock.rs", "thread::sleep", "the earlier scripts' lock tells nobody when it is free"),
    ("src/store/supervisor_lock.rs", "thread::sleep", "one who looks holds the lock for an instant"),
];

fn against_the_rules(source: &Source) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut say = |what: String| wrong.push(format!("{}: {what}", source.path.display()));
    let lines = source.whole.lines().count();
    if lines > 800 {
        say(format!("{lines} lines; split at 800"));
    }
    if !source.whole.starts_with("//!") && !source.is_test {
        say("the first line says what the file is for (`//!`)".to_owned());
    }
    let spared =
        |word: &str| SPARED.iter().any(|(path, spared, _)| source.path.starts_with(path) && *spared == word);
    let banned = BANNED.iter().filter(|(word, _)| source.code.contains(word) && !spared(word));
    banned.for_each(|(word, instead)| say(format!("`{word}`: {instead}")));
    let unfinished = UNFINISHED.iter().filter(|word| source.whole.contains(*word));
    unfinished.for_each(|word| say(format!("`{word}`: finish it")));
    for part in source.path.iter().map(|part| part.to_string_lossy()) {
        let name = part.strip_suffix(".rs").unwrap_or(&part);
        if EMPTY_WORDS.contains(&name) {
            say(format!("`{name}` says nothing of what it is"));
        }
    }
    for keyword in ["struct ", "enum ", "trait ", "mod ", "fn "] {
        for (at, _) in source.code.match_indices(keyword) {
            let rest = &source.code[at + keyword.len()..];
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let lower = name.to_lowercase();
            let empty = |word: &&&str| lower.ends_with(**word) && name.len() >= word.len();
            if let Some(word) = EMPTY_WORDS.iter().filter(|word| **word != "types").find(empty) {
                say(format!("`{name}`: `{word}` says nothing of what it is"));
            }
        }
    }
    wrong
}

#[test]
fn every_file_keeps_the_rules() {
    let wrong: Vec<String> =
        sources("src").iter().chain(&sources("parser/src")).flat_map(against_the_rules).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn stories_wait_for_states() {
    let support = Path::new("tests/stories/support");
    let this = Path::new("tests/stories/house.rs");
    for source in sources("tests") {
        let may_pause = source.path.starts_with(support) || source.path == this;
        assert!(
            may_pause || !source.whole.contains("::sleep("),
            "{}: a sleep in a story is a defect; wait for a state",
            source.path.display()
        );
        assert!(
            source.path == this || !source.whole.contains("#[ignore"),
            "{}: an ignored story",
            source.path.display()
        );
        assert!(source.whole.lines().count() <= 800, "{}: split at 800 lines", source.path.display());
    }
}

/// Builds of tmux with libutempter can miss the end of a program that `run-shell` runs (R9), and the client that waits for it,
/// or the connection with all that is asked on it after, then hears nothing more.
fn waits_for_a_program_of_tmux(source: &Source) -> bool {
    let word = "\"run-shell\"";
    let mut calls = source.whole.match_indices(word).map(|(at, _)| &source.whole[at + word.len()..]);
    calls.any(|after| {
        !after.trim_start_matches([',', ')', ' ', '.']).trim_start_matches("args([").starts_with("\"-b\"")
    })
}

#[test]
fn nobody_waits_for_a_program_of_tmux() {
    let this = Path::new("tests/stories/house.rs");
    for folder in ["src", "parser/src", "tests"] {
        for source in sources(folder).iter().filter(|source| source.path != this) {
            assert!(
                !waits_for_a_program_of_tmux(source),
                "{}: `run-shell` without `-b`",
                source.path.display()
            );
        }
    }
    for (text, waits) in [
        ("server.run([\"run-shell\", \"true\"])", true),
        ("Command::new(\"run-shell\").arg(\"true\")", true),
        ("server.run([\"run-shell\", \"-b\", \"true\"])", false),
        ("Command::new(\"run-shell\").args([\"-b\", \"true\"])", false),
    ] {
        assert_eq!(waits_for_a_program_of_tmux(&Source::new("src/a.rs", text)), waits, "{text}");
    }
}

#[test]
fn a_broken_rule_is_seen() {
    for (path, text, complaint) in [
        ("src/a.rs", "//! a\nfn f() { x.unwrap(); }", ".unwrap()"),
        ("src/a.rs", "fn f() {}", "//!"),
        ("src/util.rs", "//! a\n", "says nothing"),
        ("src/a.rs", "//! a\nstruct PaneManager;", "PaneManager"),
        ("src/a.rs", "//! a\n// TODO\n", "TODO"),
        ("src/a.rs", "//! a\n#[allow(dead_code)]\nfn f() {}", "expect"),
    ] {
        let wrong = against_the_rules(&Source::new(path, text));
        assert!(wrong.len() == 1 && wrong[0].contains(complaint), "{text:?}: {wrong:?}");
    }
    let after = "//! a\n#[cfg(test)]\nmod laws;\nfn f() { x.unwrap(); }";
    assert_eq!(against_the_rules(&Source::new("src/a.rs", after)).len(), 1, "what stands behind is code");
    assert_eq!(Source::new("src/a/mod.rs", after).tests(), [PathBuf::from("src/a/laws.rs")]);
    assert_eq!(Source::new("src/a.rs", after).tests(), [PathBuf::from("src/a/laws.rs")]);
    let long = format!("//! a\n{}", "\n".repeat(801));
    assert_eq!(against_the_rules(&Source::new("src/a.rs", &long)).len(), 1);
    let tests = "//! a\n#[cfg(test)]\nmod tests { fn f() { x.unwrap(); panic!(); } }";
    assert!(against_the_rules(&Source::new("src/a.rs", tests)).is_empty());
}
