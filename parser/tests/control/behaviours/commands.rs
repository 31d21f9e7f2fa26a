//! Which lines are written and which are refused.

use tmux_control::{Command, Refused};

#[test]
fn what_a_line_cannot_carry_is_refused() {
    for name in
        ["", " ", "# comment", "#", "FOO=bar", "a=b", "%if", "list panes", "x;y", "{", "-t", "'a'", "é"]
    {
        let name = name.to_owned();
        assert_eq!(Command::new(name.clone()).to_line(), Err(Refused::Name { name }));
    }
    for byte in [0, 0xff] {
        let refused = Command::new("set-buffer").arg("-b").arg([b'a', byte]).to_line();
        assert_eq!(refused, Err(Refused::Byte { name: "set-buffer".into(), argument: 2, byte }));
    }
    let nothing: [Command; 0] = [];
    assert!(matches!(
        Command::new("if-shell").commands(nothing).to_line(),
        Err(Refused::Empty { argument: 1, .. })
    ));
}

#[test]
fn words_are_quoted_where_tmux_would_read_more_into_them() {
    for (word, quoted) in [
        ("plain-Word_1.2/3:4,5@6", "plain-Word_1.2/3:4,5@6"),
        ("%0", "%0"),
        ("%0:on", "'%0:on'"),
        ("%", "'%'"),
        ("%x", "'%x'"),
        ("$1", "'$1'"),
        (";", "';'"),
        ("a;", "'a;'"),
        ("#{pane_id}", "'#{pane_id}'"),
        ("~/x", "'~/x'"),
        ("{", "'{'"),
        ("}", "'}'"),
        ("", "''"),
        (" ", "' '"),
        ("a\tb", "'a\tb'"),
        ("\"q\"", "'\"q\"'"),
        ("it's", "'it'\\''s'"),
        ("'", "''\\'''"),
        ("\\", "'\\'"),
        ("a=b", "'a=b'"),
        ("é", "'é'"),
        ("cr\r", "'cr\r'"),
        ("a\nb", "'a'\\n'b'"),
        ("\n", "''\\n''"),
    ] {
        let line = Command::new("display-message").arg(word).to_line().unwrap();
        assert_eq!(String::from_utf8(line).unwrap(), format!("display-message {quoted}\n"));
    }
}

#[test]
fn commands_within_a_command_are_one_word() {
    let inner =
        [Command::new("kill-pane").args(["-t", "%1"]), Command::new("display-message").args(["-p", "it's"])];
    let line = Command::new("if-shell").args(["-F", "-t", "%1", "#{x}"]).commands(inner).to_line().unwrap();
    let expected =
        r"if-shell -F -t %1 '#{x}' 'kill-pane -t %1 ; display-message -p '\''it'\''\'\'''\''s'\'''";
    assert_eq!(String::from_utf8(line).unwrap(), format!("{expected}\n"));
}

#[test]
fn commands_that_wait_for_a_key_are_refused() {
    for name in [
        "command-prompt",
        "confirm-before",
        "confirm",
        "display-menu",
        "menu",
        "display-popup",
        "popup",
        "display-panes",
        "displayp",
        "command-p",
        "confirm-b",
        "display-me",
        "display-pop",
    ] {
        let refused = Command::new(name).arg("-b").to_line();
        assert_eq!(refused, Err(Refused::Interactive { name: name.into() }));
        let within = Command::new("if-shell").args(["-F", "1"]).commands([Command::new(name)]).to_line();
        assert_eq!(within, Err(Refused::Interactive { name: name.into() }));
    }
    for name in ["display-message", "display", "list-panes", "copy-mode", "choose-tree", "confirmed", "menus"]
    {
        assert!(Command::new(name).to_line().is_ok(), "{name}");
    }
}
