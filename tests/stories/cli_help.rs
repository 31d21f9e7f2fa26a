//! What `--help` says, everywhere: the words are read by people, and asking for them never does anything.

use std::fmt::Write as _;

use crate::support::Home;

/// Every command that a user sees, as the help of `ait` lists them.
fn commands(home: &Home) -> Vec<String> {
    let help = home.ait(["--help"]).ok().text();
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

#[test]
fn the_help_of_every_command() {
    let home = Home::new();
    let mut all = String::new();
    for command in commands(&home) {
        let help = home.ait([command.as_str(), "--help"]).ok();
        assert_eq!(help.errors(), "");
        writeln!(all, "$ ait {command} --help\n{}\n", help.text()).unwrap();
    }
    assert!(all.contains("$ ait status --help"), "the commands were found:\n{all}");
    insta::assert_snapshot!("help", all);
}

#[test]
fn help_is_asked_for_by_its_word_as_well() {
    let home = Home::new();
    for (words, same) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "start"], &["start", "--help"]),
        (&["help", "task", "link"], &["task", "link", "--help"]),
    ] {
        assert_eq!(home.ait(words).ok().text(), home.ait(same).ok().text(), "{words:?}");
    }
    assert!(home.ait(["help", "nope"]).code(64).errors().contains("unrecognized subcommand 'nope'"));
}

#[test]
fn the_readme_tells_of_every_command() {
    let home = Home::new();
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    for command in commands(&home) {
        let told = readme.lines().any(|line| line.starts_with(&format!("| `ait {command}")));
        assert!(told, "README.md has no row for `ait {command}`");
    }
}

#[test]
fn help_changes_nothing_wherever_it_stands() {
    let home = Home::new();
    let before = tree(&home);
    for words in [
        &["setup", "--yes", "--help"][..],
        &["setup", "--help", "--yes"],
        &["setup", "--remove", "-y", "-h"],
        &["adopt", "--all", "--help"],
        &["adopt", "-h", "%0"],
        &["status", "--watch", "--help"],
        &["doctor", "--touched", "-h"],
        &["help", "setup", "--yes"],
    ] {
        let ran = home.ait(words).ok();
        assert!(ran.text().contains("Usage: ait"), "{words:?}");
    }
    assert_eq!(tree(&home), before);
}

#[test]
fn wrong_words_are_usage_and_change_nothing() {
    let home = Home::new();
    let before = tree(&home);
    for words in [
        &["no-such-command"][..],
        &["setup", "--no-such-flag"],
        &["setup", "--autostart"],
        &["setup", "--autostart", "--yes"],
        &["setup", "--autostart", "cron"],
        &["setup", "--dry-run", "--yes"],
        &["setup", "--remove", "--autostart", "tmux"],
        &["adopt"],
        &["adopt", "%0", "--all"],
        &["adopt", "0"],
        &["adopt", "main:1"],
        &["status", "extra"],
    ] {
        let ran = home.ait(words).code(64);
        assert!(ran.errors().starts_with("error: "), "{words:?}: {ran}");
        assert_eq!(ran.text(), "", "{words:?}");
    }
    let bare = home.ait([""; 0]).code(64);
    assert!(bare.errors().contains("Usage: ait"), "{bare}");
    assert_eq!(tree(&home), before);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let home = Home::new();
    let script = home.script("quick", "#!/bin/sh\n\"$1\" \"$2\" --help | :\nexit 0\n");
    let ran = crate::support::Ran::run(home.command(script).arg(crate::support::AIT).arg("status")).ok();
    assert_eq!(ran.errors(), "");
}

/// Every file and folder of the home, with what is in it.
pub(crate) fn tree(home: &Home) -> Vec<(String, Vec<u8>)> {
    let mut folders = vec![home.home()];
    let mut all = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(home.home()).unwrap().to_string_lossy().into_owned();
            if path.is_symlink() {
                all.push((
                    name,
                    std::fs::read_link(&path).unwrap().to_string_lossy().into_owned().into_bytes(),
                ));
            } else if path.is_dir() {
                folders.push(path);
                all.push((name, Vec::new()));
            } else {
                all.push((name, std::fs::read(&path).unwrap_or_default()));
            }
        }
    }
    all.sort();
    all
}

#[test]
fn the_version_is_one_line_and_with_its_build_three() {
    let home = Home::new();
    let short = home.ait(["-V"]).ok().text();
    assert_eq!(short, format!("ait {}", env!("CARGO_PKG_VERSION")));
    let long = home.ait(["--version"]).ok().text();
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines.len(), 3, "{long}");
    assert_eq!(lines[0], short);
    assert!(lines[1].contains(std::env::consts::ARCH) && lines[2].ends_with("format 1"), "{long}");
}
