//! `ait setup`: shows before it does, keeps every byte that is not its own, and takes all of it back.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::cli_help::tree;
use crate::support::tmux::{Start, binary};
use crate::support::{AIT, DEADLINE, Home, Ran, Tmux, not_run, wait_until};

/// A home on a machine without a user manager, whose tmux.conf holds `bytes`.
fn with_conf(bytes: &[u8]) -> (Home, PathBuf) {
    let home = Home::new();
    home.script("systemctl", "#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n");
    let conf = home.home().join(".tmux.conf");
    fs::write(&conf, bytes).unwrap();
    (home, conf)
}

/// Ends what a setup started, whatever else happens in a story.
struct TakenBack(Home);

impl Drop for TakenBack {
    fn drop(&mut self) {
        self.0.ait(["setup", "--remove", "--yes"]);
    }
}

fn ours(conf: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&fs::read(conf).unwrap()).into_owned();
    text.lines().filter(|line| line.contains("supervise --detach")).map(str::to_owned).collect()
}

/// Whether a supervisor runs on this home's store.
fn is_up(home: &Home) -> bool {
    home.ait(["status", "--json"]).status.code() != Some(11)
}

#[test]
fn a_dry_run_shows_the_diff_and_changes_nothing() {
    let (home, conf) = with_conf(b"set -g mouse on");
    let before = tree(&home);
    let ran = home.ait(["setup", "--dry-run"]).ok();
    let text = ran.text();
    assert!(text.contains(&format!("--- {0}\n+++ {0}\n@@ -1 +1,2 @@\n", conf.display())), "{ran}");
    assert!(text.contains("+run-shell -b \""), "{ran}");
    assert!(text.contains("\\ No newline at end of file"), "{ran}");
    assert!(text.contains("nothing was changed"), "{ran}");
    assert_eq!(tree(&home), before);
    assert!(!is_up(&home));
}

#[test]
fn a_script_must_say_yes() {
    let (home, _) = with_conf(b"set -g mouse on\n");
    let before = tree(&home);
    let ran = home.ait(["setup"]).code(64);
    assert!(ran.errors().contains("hint: say --yes to do it"), "{ran}");
    assert_eq!(tree(&home), before);
}

#[test]
fn five_runs_leave_one_line_and_a_removal_gives_back_every_byte() {
    let odd: [&[u8]; 6] = [
        b"set -g mouse on",
        b"",
        b"\xef\xbb\xbfset -g mouse on\r\n# \xff\x00 not text\r\n",
        b"set -g status-left \\\n",
        b"# ait\nrun-shell 'true' # ait\n",
        b"if-shell true {\n  set -g mouse on\n}\n\n\n",
    ];
    for bytes in odd {
        let (home, conf) = with_conf(bytes);
        let _back = TakenBack(home.clone());
        fs::set_permissions(&conf, fs::Permissions::from_mode(0o640)).unwrap();
        home.ait(["setup", "--yes"]).ok();
        let once = fs::read(&conf).unwrap();
        assert_eq!(ours(&conf).len(), 1);
        assert_eq!(fs::metadata(&conf).unwrap().mode() & 0o7777, 0o640);
        for _ in 0..4 {
            // nothing is left to write, so nobody has to be asked
            home.ait(["setup"]).ok();
            assert_eq!(fs::read(&conf).unwrap(), once);
        }
        home.ait(["setup", "--remove", "--yes"]).ok();
        assert_eq!(fs::read(&conf).unwrap(), bytes);
        assert_eq!(fs::metadata(&conf).unwrap().mode() & 0o7777, 0o640);
        assert!(!is_up(&home));
        home.ait(["setup", "--remove"]).ok();
    }
}

#[test]
fn a_file_it_made_goes_again() {
    let (home, conf) = with_conf(b"");
    let _back = TakenBack(home.clone());
    fs::remove_file(&conf).unwrap();
    home.ait(["setup", "--yes", "--autostart", "tmux"]).ok();
    assert_eq!(ours(&conf).len(), 1);
    home.ait(["setup", "--remove", "--yes"]).ok();
    assert!(!conf.exists());
}

#[test]
fn the_agents_already_running_are_under_care_when_it_ends() {
    let (home, conf) = with_conf(b"set -g base-index 1\n");
    let _back = TakenBack(home.clone());
    let tmux = Tmux::start(&home);
    let program = home.bin().join("claude");
    let pane = tmux.window("main", "w", &home.project("alpha"), &[program.to_str().unwrap(), "demo-agent"]);
    wait_until("the stand-in to draw", DEADLINE, || {
        tmux.ok(["capture-pane", "-p", "-t", &pane.id]).contains("waiting").then_some(())
    });
    let ran = home.ait(["setup", "--yes"]).ok();
    assert!(ran.text().contains("supervisor: running (pid "), "{ran}");
    assert!(ran.text().contains("Next:"), "{ran}");
    let id = tmux.format(&pane.id, "#{@aitask_record}");
    assert!(home.record(&id).is_some(), "{ran}");
    wait_until("the record to be watched", DEADLINE, || {
        let status = home.ait(["status", "--json"]).json();
        (status["records"][0]["known"]["by"] == "watched").then_some(())
    });
    home.ait(["doctor"]).code(0);
    let server = tmux.server();
    home.ait(["setup", "--remove", "--yes"]).ok();
    assert!(server.alive() && pane.process().alive(), "the agent and its server go on");
    assert_eq!(tmux.run(["has-session", "-t", "=_ait"]).status.code(), Some(1));
    assert!(home.record(&id).is_some(), "the record stays");
    assert_eq!(fs::read(&conf).unwrap(), b"set -g base-index 1\n");
}

#[test]
fn on_a_terminal_it_asks() {
    let (home, conf) = with_conf(b"set -g mouse on\n");
    let _back = TakenBack(home.clone());
    let tmux = Tmux::start(&home);
    let pane = tmux.panes()[0].clone();
    let screen = |what: &str| {
        wait_until(what, DEADLINE, || {
            tmux.ok(["capture-pane", "-pJ", "-t", &pane.id]).contains(what).then_some(())
        });
    };
    let command = format!("{AIT} setup --autostart tmux; echo ended with $?");
    tmux.ok(["send-keys", "-t", &pane.id, &command, "Enter"]);
    screen("Do this? [y/N]");
    assert_eq!(fs::read(&conf).unwrap(), b"set -g mouse on\n", "nothing before the answer");
    tmux.ok(["send-keys", "-t", &pane.id, "n", "Enter"]);
    screen("ended with 1");
    assert_eq!(fs::read(&conf).unwrap(), b"set -g mouse on\n");
    assert!(!is_up(&home));
    tmux.ok(["clear-history", "-t", &pane.id]);
    tmux.ok(["send-keys", "-t", &pane.id, &format!("clear; {command}"), "Enter"]);
    screen("Do this? [y/N]");
    tmux.ok(["send-keys", "-t", &pane.id, "y", "Enter"]);
    screen("ended with 0");
    assert_eq!(ours(&conf).len(), 1);
    assert!(is_up(&home));
}

#[test]
fn a_removal_takes_back_what_a_crash_left() {
    let (home, _) = with_conf(b"");
    let _back = TakenBack(home.clone());
    let tmux = Tmux::start(&home);
    let pane = tmux.window("main", "w", &home.home(), &["cat"]);
    let theirs = tmux.window("main", "mine", &home.home(), &["cat"]);
    tmux.ok(["set-option", "-p", "-t", &theirs.id, "remain-on-exit", "on"]);
    tmux.ok(["set-option", "-p", "-t", &theirs.id, "@mine", "x"]);
    for (option, value) in
        [("@aitask_record", "0badcafe"), ("@aitask_respawn_token", "t"), ("remain-on-exit", "on")]
    {
        tmux.ok(["set-option", "-p", "-t", &pane.id, option, value]);
    }
    tmux.session("_ait", &home.home(), &["cat"]);
    let shown = home.ait(["setup", "--remove", "--dry-run"]).ok();
    assert!(
        shown.text().contains("nothing was changed") || shown.text().contains("nothing of ait"),
        "{shown}"
    );
    assert_ne!(tmux.ok(["show-options", "-p", "-t", &pane.id]), "");
    home.ait(["setup", "--remove", "--yes"]).ok();
    assert_eq!(tmux.ok(["show-options", "-p", "-t", &pane.id]), "");
    assert_eq!(tmux.ok(["show-options", "-p", "-t", &theirs.id]), "@mine x\nremain-on-exit on");
    assert_eq!(tmux.ok(["list-sessions", "-F", "#{session_name}"]), "main");
    assert!(pane.process().alive());
}

#[test]
fn the_line_starts_a_supervisor_with_a_server() {
    let (home, conf) = with_conf(b"set -g mouse on\n");
    let _back = TakenBack(home.clone());
    home.ait(["setup", "--yes"]).ok();
    let up = home.ait(["status", "--json"]).json()["supervisor"]["pid"].as_u64().unwrap();
    let process = crate::support::proc::Process::of(u32::try_from(up).unwrap()).unwrap();
    process.signal(rustix::process::Signal::KILL);
    assert!(process.dies(DEADLINE));
    // a child it was about to start may hold its lock an instant longer
    wait_until("nobody to be up", DEADLINE, || (!is_up(&home)).then_some(()));
    let configuration = fs::read_to_string(&conf).unwrap();
    let tmux = Tmux::start_with(&home, Start { configuration, ..Start::default() });
    wait_until("the line to start a supervisor", DEADLINE, || is_up(&home).then_some(()));
    assert_eq!(
        tmux.ok(["source-file", "-n", conf.to_str().unwrap()]),
        "",
        "tmux reads it without a complaint"
    );
}

#[test]
fn a_symlinked_file_is_changed_where_it_lies() {
    let (home, conf) = with_conf(b"");
    let _back = TakenBack(home.clone());
    let real = home.home().join("dotfiles/tmux.conf");
    fs::create_dir(real.parent().unwrap()).unwrap();
    fs::rename(&conf, &real).unwrap();
    fs::write(&real, "set -g mouse on\n").unwrap();
    symlink("dotfiles/tmux.conf", &conf).unwrap();
    home.ait(["setup", "--yes"]).ok();
    assert_eq!(fs::read_link(&conf).unwrap(), Path::new("dotfiles/tmux.conf"));
    assert_eq!(ours(&real).len(), 1);
    home.ait(["setup", "--remove", "--yes"]).ok();
    assert_eq!(fs::read_link(&conf).unwrap(), Path::new("dotfiles/tmux.conf"));
    assert_eq!(fs::read(&real).unwrap(), b"set -g mouse on\n");
}

#[test]
fn an_older_install_elsewhere_is_replaced() {
    let old = b"set -g mouse on\nrun-shell -b \"exec /old/place/ait supervise --detach >/dev/null 2>&1\" # ait\nset -g x 1\n";
    let (home, conf) = with_conf(old);
    let _back = TakenBack(home.clone());
    let second = home.home().join(".config/tmux/tmux.conf");
    fs::create_dir_all(second.parent().unwrap()).unwrap();
    fs::write(&second, [&b"# mine\n"[..], old].concat()).unwrap();
    home.ait(["setup", "--yes"]).ok();
    assert_eq!(ours(&conf).len(), 1);
    assert!(ours(&conf)[0].contains(AIT), "{:?}", ours(&conf));
    assert_eq!(fs::read(&second).unwrap(), b"# mine\nset -g mouse on\nset -g x 1\n", "tmux reads both files");
    assert!(fs::read(&conf).unwrap().ends_with(b"# ait\nset -g x 1\n"), "where it stood");
}

#[test]
fn a_file_that_is_not_to_be_written_stays_and_nothing_else_is_done() {
    let (home, conf) = with_conf(b"set -g mouse on\n");
    fs::set_permissions(&conf, fs::Permissions::from_mode(0o444)).unwrap();
    let before = tree(&home);
    let ran = home.ait(["setup", "--yes"]).code(1);
    assert!(ran.errors().contains(".tmux.conf is left as it is: it is read-only"), "{ran}");
    assert!(ran.errors().contains("hint: --autostart"), "{ran}");
    assert_eq!(tree(&home), before);
    fs::remove_file(&conf).unwrap();
    symlink("/no/such/file", &conf).unwrap();
    let ran = home.ait(["setup", "--yes"]).code(1);
    assert!(ran.errors().contains("it is a symlink to nothing"), "{ran}");
    assert!(!is_up(&home));
}

#[test]
fn a_user_manager_gets_a_unit_instead_of_a_line() {
    let (home, conf) = with_conf(b"set -g mouse on\n");
    let _back = TakenBack(home.clone());
    let calls = home.root().join("calls");
    let text = format!("#!/bin/sh\necho \"$*\" >>{}\necho Version=252\n", calls.display());
    home.script("systemctl", &text);
    home.ait(["setup", "--yes"]).ok();
    let unit = home.home().join(".config/systemd/user/ait.service");
    let text = fs::read_to_string(&unit).unwrap();
    for line in [
        "Type=notify",
        "KillMode=process",
        &format!("Environment=\"TMUX_TMPDIR={}\"", home.tmux_tmpdir().display()),
    ] {
        assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
    }
    assert!(text.contains(&format!("ExecStart=\"{AIT}\" supervise\n")), "{text}");
    assert_eq!(fs::read(&conf).unwrap(), b"set -g mouse on\n", "one way of starting, not two");
    let called = fs::read_to_string(&calls).unwrap();
    let order: Vec<&str> = called.lines().filter(|line| !line.contains("show")).collect();
    assert_eq!(order, ["--user daemon-reload", "--user enable ait.service", "--user restart ait.service"]);
    // another way replaces it
    home.ait(["setup", "--yes", "--autostart", "tmux"]).ok();
    assert!(!unit.exists());
    assert_eq!(ours(&conf).len(), 1);
    assert!(fs::read_to_string(&calls).unwrap().contains("--user disable --now ait.service"));
    // a unit of that name that somebody else wrote is theirs
    fs::write(&unit, "[Service]\nExecStart=/bin/true\n").unwrap();
    let ran = home.ait(["setup", "--yes", "--autostart", "systemd"]).code(1);
    assert!(ran.errors().contains("it was not written by `ait setup`"), "{ran}");
    assert_eq!(ours(&conf).len(), 1);
    home.ait(["setup", "--remove", "--yes"]).ok();
    assert_eq!(fs::read_to_string(&unit).unwrap(), "[Service]\nExecStart=/bin/true\n");
}

#[test]
fn a_tmux_that_is_too_old_or_missing_stops_it() {
    let (home, _) = with_conf(b"");
    for (script, words) in [
        ("#!/bin/sh\necho tmux 3.1c\n", "is tmux 3.1c; 3.2 or later is needed"),
        ("#!/bin/sh\necho tmux is not here\n", "which is no version of tmux"),
        ("#!/bin/sh\nexit 127\n", "-V ends with"),
    ] {
        home.script("tmux", script);
        let before = tree(&home);
        let ran = home.ait(["setup", "--yes"]).code(69);
        assert!(ran.errors().contains(words), "{ran}");
        assert_eq!(tree(&home), before);
    }
    let nowhere = Ran::run(home.ait_command(["setup", "--yes"]).env("PATH", home.runtime())).code(69);
    assert!(nowhere.errors().contains("no tmux on PATH"), "{nowhere}");
    assert!(nowhere.errors().contains("hint: install tmux"), "{nowhere}");
}

#[test]
fn without_a_home_it_says_so() {
    let (home, _) = with_conf(b"");
    for words in [["setup", "--yes"], ["setup", "--dry-run"], ["setup", "--remove"]] {
        let ran = Ran::run(home.ait_command(words).env_remove("HOME")).code(69);
        assert!(ran.errors().contains("HOME is not set"), "{ran}");
        Ran::run(home.ait_command(words).env("HOME", "relative")).code(69);
    }
}

#[test]
fn a_read_only_home_is_left_as_it_is() {
    let (home, _) = with_conf(b"set -g mouse on\n");
    let script = format!(
        "mount --bind {0} {0} && mount -o remount,bind,ro {0} && exec {AIT} setup --yes --autostart tmux",
        home.home().display()
    );
    let probe = Ran::run(home.command("unshare").args(["--mount", "true"]));
    if !probe.status.success() {
        return not_run("a mount namespace is refused here");
    }
    let before = tree(&home);
    let ran = Ran::run(home.command("unshare").args(["--mount", "sh", "-c", &script]));
    assert_eq!(ran.status.code(), Some(1), "{ran}");
    assert!(
        ran.errors().contains("cannot write ") && ran.errors().contains("Read-only file system"),
        "{ran}"
    );
    assert_eq!(tree(&home), before);
    assert!(!is_up(&home));
}

#[test]
fn the_files_are_those_that_tmux_reads() {
    let (home, conf) = with_conf(b"set -g @first 1\n");
    let second = home.home().join(".config/tmux/tmux.conf");
    fs::create_dir_all(second.parent().unwrap()).unwrap();
    fs::write(&second, "set -g @second 1\n").unwrap();
    let tmux = Tmux::unstarted(&home, Start::default());
    let mut command = home.command(binary());
    Ran::run(command.arg("-S").arg(tmux.socket()).args(["new-session", "-d", "-s", "main"])).ok();
    tmux.remember();
    let options = tmux.ok(["show-options", "-g"]);
    assert!(options.contains("@first 1") && options.contains("@second 1"), "{options}");
    // with neither, the file beside an existing folder is the one
    fs::remove_file(&conf).unwrap();
    fs::remove_file(&second).unwrap();
    let ran = home.ait(["setup", "--dry-run"]).ok();
    assert!(ran.text().contains(&format!("+++ {}", second.display())), "{ran}");
}

/// The settings files of providers in this home, and what is in them.
fn provider(home: &Home, file: &str, text: &str) -> PathBuf {
    let path = home.home().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_hooks_of_providers_come_once_and_go_without_a_trace_and_stay_away() {
    let (home, _) = with_conf(b"");
    let settings = "{\n  // mine\n  \"model\": \"opus\",\n  \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say\"}]}]}\n}\n";
    let real = provider(&home, "dotfiles/claude.json", settings);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(home.home().join(".claude")).unwrap();
    let link = home.home().join(".claude/settings.json");
    symlink("../dotfiles/claude.json", &link).unwrap();
    let broken = provider(&home, ".gemini/settings.json", "{ \"hooks\": ");
    let codex = provider(&home, ".codex/config.toml", "");
    let _end = TakenBack(home.clone());

    let shown = home.ait(["setup", "--dry-run"]).ok().text();
    assert!(
        shown.contains("+    \"SessionStart\": [{\"hooks\"")
            || shown.contains(" hook SessionStart --provider claude"),
        "{shown}"
    );
    assert_eq!(fs::read_to_string(&real).unwrap(), settings);
    for _ in 0..2 {
        let said = home.ait(["setup", "--yes"]).ok().text();
        assert!(said.contains("hooks of gemini: not set up") && said.contains("it does not parse"), "{said}");
    }
    let text = fs::read_to_string(&real).unwrap();
    assert_eq!(text.matches(" hook SessionStart --provider claude").count(), 1, "{text}");
    assert_eq!(text.matches(" hook Stop --provider claude").count(), 1, "{text}");
    assert_eq!(fs::read_to_string(&broken).unwrap(), "{ \"hooks\": ");
    let hooks = codex.with_file_name("hooks.json");
    assert!(!hooks.exists(), "codex only if asked for");
    assert!(!home.home().join(".qwen").exists(), "no home of a provider is made");

    let said = home.ait(["setup", "--yes", "--hooks", "codex"]).ok().text();
    assert!(said.contains("waits until you have reviewed and trusted"), "{said}");
    assert!(fs::read_to_string(&hooks).unwrap().contains(" hook SessionStart --provider codex"));

    home.ait(["setup", "--remove", "--yes"]).ok();
    assert_eq!(fs::read_to_string(&real).unwrap(), settings, "every foreign byte");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("../dotfiles/claude.json"));
    assert_eq!(fs::metadata(&real).unwrap().mode() & 0o7777, 0o600);
    assert!(!hooks.exists());

    let said = home.ait(["setup", "--yes"]).ok().text();
    assert!(said.contains("hooks of claude: taken out before"), "{said}");
    assert_eq!(fs::read_to_string(&real).unwrap(), settings);
    home.ait(["setup", "--yes", "--hooks", "claude"]).ok();
    assert!(fs::read_to_string(&real).unwrap().contains(" hook Stop --provider claude"));
    home.ait(["setup", "--yes", "--hooks", "gemini"]).code(65);
    home.ait(["setup", "--yes", "--hooks", "qwen"]).code(69);
    home.ait(["setup", "--yes", "--hooks", "vim"]).code(64);
}

#[test]
fn without_hooks_no_settings_are_touched_and_help_touches_nothing() {
    let (home, _) = with_conf(b"");
    let settings = provider(&home, ".claude/settings.json", "{}\n");
    let before = tree(&home);
    for words in [
        &["setup", "--help"][..],
        &["setup", "--hooks", "claude", "--help"],
        &["setup", "--yes", "-h"],
        &["hook", "--help"],
    ] {
        home.ait(words).ok();
        assert_eq!(tree(&home), before, "{words:?}");
    }
    let _end = TakenBack(home.clone());
    home.ait(["setup", "--yes", "--no-hooks"]).ok();
    assert_eq!(fs::read_to_string(&settings).unwrap(), "{}\n");
}
