//! Full and read-only disks, links, modes and masks.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use super::super::support::{Home, Ran, not_run};
use super::{record, upsert};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// Runs a script with a 1 MiB tmpfs of its own mounted at `$DISK`, the store on it. `None` where mounting is refused.
fn on_small_disk(home: &Home, script: &str) -> Option<Ran> {
    let disk = home.root().join("disk");
    fs::create_dir(&disk).unwrap();
    let whole = format!("mount -t tmpfs -o size=1m,mode=0700 ait-story \"$DISK\" || exit 77\n{script}");
    let mut command = home.command("unshare");
    command.args(["-m", "sh", "-euc", &whole]);
    command.env("DISK", &disk).env("AIT", super::super::support::AIT);
    command.env("AITASKS_AGENT_SESSIONS_FILE", disk.join("s.json"));
    let ran = Ran::run(&mut command);
    if ran.status.code() == Some(77) || ran.errors().contains("unshare:") {
        not_run(&format!("no private mount: {}", ran.errors()));
        return None;
    }
    Some(ran)
}

/// Makes a store of more than a hundred KiB: 40 records with long names.
const FILL: &str = r#"
i=0
long=$(printf '%03000d' 0)
while [ $i -lt 40 ]; do
  "$AIT" record upsert --root / --window "w$i-$long" --pane '' --pane-pid 0 >/dev/null
  i=$((i + 1))
done
"#;

#[test]
fn a_full_disk_leaves_the_old_generation_whole() {
    let home = Home::new();
    let script = FILL.to_owned()
        + r#"
cp "$DISK/s.json" "$DISK/../before"
cat "$DISK/s.json.prev" > "$DISK/../prev"
# room for the locks and half a store, then for nothing at all
for room in 60 20 8 0; do
  : > "$DISK/filler"
  dd if=/dev/zero of="$DISK/filler" bs=1k count=4000 2>/dev/null || true
  if [ $room -gt 0 ]; then
    size=$(stat -c %s "$DISK/filler")
    truncate -s $((size - room * 1024)) "$DISK/filler"
  fi
  code=0
  "$AIT" record upsert --root / --window new --pane '' --pane-pid 0 || code=$?
  echo "room $room: exit $code"
  cmp "$DISK/s.json" "$DISK/../before"
  ls -A "$DISK" | grep -v -e '^s.json$' -e '^s.json.lock$' -e '^s.json.prev$' -e '^filler$' && exit 9
  "$AIT" record list >/dev/null
done
rm "$DISK/filler"
"$AIT" record upsert --root / --window new --pane '' --pane-pid 0
"#;
    let Some(ran) = on_small_disk(&home, &script) else { return };
    let said = ran.ok().text();
    for room in [60, 20, 8, 0] {
        assert!(said.contains(&format!("room {room}: exit 1")), "{said}");
    }
    assert!(said.lines().last().unwrap().ends_with("|created"), "with room again it goes on: {said}");
}

#[test]
fn a_read_only_disk_is_an_error_and_still_read() {
    let home = Home::new();
    let script = r#"
"$AIT" record upsert --root / --window w --pane '' --pane-pid 0
cp "$DISK/s.json" "$DISK/../before"
mount -o remount,ro "$DISK"
code=0
"$AIT" record upsert --root / --window new --pane '' --pane-pid 0 || code=$?
echo "exit $code"
cmp "$DISK/s.json" "$DISK/../before"
"$AIT" record list
"#;
    let Some(ran) = on_small_disk(&home, script) else { return };
    let ran = ran.ok();
    assert!(ran.text().contains("exit 1\nSESSION:"), "{ran}");
    assert!(ran.errors().contains("s.json.lock") && ran.errors().contains("Read-only"), "{ran}");
}

#[test]
fn a_symlinked_store_is_replaced_at_its_target() {
    let home = Home::on_tmpfs();
    let real = home.root().join("real");
    fs::create_dir(&real).unwrap();
    let folder = home.store().parent().unwrap().to_owned();
    fs::create_dir_all(&folder).unwrap();
    symlink("../../../real/store.json", home.store()).unwrap();
    let id = upsert(&home, "w");
    upsert(&home, "w");
    assert!(fs::symlink_metadata(home.store()).unwrap().is_symlink(), "the link stays");
    assert!(home.record(&id).is_some());
    for name in ["store.json", "store.json.prev", "store.json.lock"] {
        assert!(real.join(name).exists(), "{name} lies beside the file");
    }
    record(&home, ["drop", &id]).ok();
    assert!(real.join("store.archive.jsonl").exists());
    let beside: Vec<_> = fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(beside, ["agent_sessions.json"], "nothing but the link lies beside the link");
}

#[test]
fn an_open_mode_is_narrowed_and_said_a_narrower_one_is_kept() {
    let home = Home::on_tmpfs();
    let id = upsert(&home, "w");
    upsert(&home, "v");
    assert_eq!(mode(&home.store()), 0o600);
    let prev = home.store().with_file_name("agent_sessions.json.prev");
    fs::set_permissions(home.store(), fs::Permissions::from_mode(0o644)).unwrap();
    let ran = record(&home, ["fill-task", &id, "--task-id", "1"]).ok();
    assert!(ran.errors().contains("0644"), "{ran}");
    assert_eq!((mode(&home.store()), mode(&prev)), (0o600, 0o600));
    fs::set_permissions(home.store(), fs::Permissions::from_mode(0o400)).unwrap();
    let ran = record(&home, ["fill-task", &id, "--operation", "1"]).ok();
    assert_eq!((mode(&home.store()), ran.errors().as_str()), (0o400, ""));
}

#[test]
fn no_mask_opens_or_closes_what_is_written() {
    for mask in ["000", "022", "077"] {
        let home = Home::on_tmpfs();
        fs::remove_dir_all(home.home().join(".config")).unwrap();
        let me = std::process::id();
        let script = format!(
            "umask {mask}
            id=$(\"$AIT\" record upsert --root / --window w --pane %1 --pane-pid {me} | cut -d: -f2 | cut -d'|' -f1)
            \"$AIT\" record upsert --root / --window v --pane %2 --pane-pid {me}
            \"$AIT\" record drop \"$id\""
        );
        let mut command = home.command("sh");
        command.args(["-euc", &script]).env("AIT", super::super::support::AIT);
        Ran::run(&mut command).ok();
        let folder = home.store().parent().unwrap().to_owned();
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700), "umask {mask}");
        let mut files = 0;
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            files += 1;
            assert_eq!(mode(&entry.path()), 0o600, "umask {mask}: {:?}", entry.file_name());
        }
        assert_eq!(files, 5, "store, prev, lock, archive and its index");
    }
}
