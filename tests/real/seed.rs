//! What a new home must hold so that an agent starts without a question and asks only the mock; every key is a dummy.
//!
//! The address and the key stand in the agents' own files where these have a place for them, so that an agent that comes back
//! under another environment still reaches the mock.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::install::{CLAUDE, CODEX, GEMINI, HERMES, Kind, OPENCODE, PI};
use crate::mock::Mock;
use crate::support::{Home, Ran};

const KEY: &str = "sk-ant-dummy-0000000000000000000000000000";

/// Writes the settings of `kind` into `home`.
#[track_caller]
pub(crate) fn settings(kind: Kind, home: &Home, projects: &[PathBuf], mock: &Mock) {
    let (home, mock) = (home.home(), mock.address());
    match kind {
        CLAUDE => claude(&home, projects, &mock),
        CODEX => codex(&home, projects, &mock),
        GEMINI => gemini(&home, projects),
        OPENCODE => opencode(&home, kind, &mock),
        PI => pi(&home, &mock),
        HERMES => hermes(&home, &mock),
        _ => panic!("no settings for {}", kind.name),
    }
}

/// What `kind` takes from its environment alone.
pub(crate) fn environment(kind: Kind, mock: &Mock) -> Vec<(String, String)> {
    let variables: &[(&str, &str)] = match kind {
        GEMINI => &[("GEMINI_API_KEY", "dummy"), ("GOOGLE_GEMINI_BASE_URL", &mock.address())],
        OPENCODE => &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ],
        PI => &[("PI_OFFLINE", "1"), ("PI_SKIP_VERSION_CHECK", "1")],
        HERMES => &[("OPENAI_API_KEY", "dummy"), ("HERMES_ACCEPT_HOOKS", "1")],
        _ => &[],
    };
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// What `kind` is started with in every story.
pub(crate) fn flags(kind: Kind) -> &'static [&'static str] {
    match kind {
        CODEX => &["--no-daemon"],
        _ => &[],
    }
}

#[track_caller]
fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn claude(home: &Path, projects: &[PathBuf], mock: &str) {
    let trust =
        json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "allowedTools": []});
    let trusted: serde_json::Map<String, Value> =
        projects.iter().map(|folder| (folder.to_string_lossy().into_owned(), trust.clone())).collect();
    let state = json!({
        "hasCompletedOnboarding": true, "lastOnboardingVersion": CLAUDE.version, "theme": "dark", "numStartups": 5,
        "hasSeenAutoDefaultNotice": true, "hasSeenAutoModeEntryWarning": true, "hasSeenAutoDefaultNudge": true,
        "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        "projects": trusted,
    });
    put(&home.join(".claude.json"), &state.to_string());
    let settings = json!({
        "tui": "default", "permissions": {"defaultMode": "default"}, "skipAutoPermissionPrompt": true,
        "env": {
            "ANTHROPIC_BASE_URL": mock, "ANTHROPIC_API_KEY": KEY, "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    });
    put(&home.join(".claude/settings.json"), &settings.to_string());
}

fn codex(home: &Path, projects: &[PathBuf], mock: &str) {
    let mut text = format!(
        "model = \"mock-model\"\nmodel_provider = \"mock\"\napproval_policy = \"on-request\"\n\
         sandbox_mode = \"workspace-write\"\ncheck_for_update_on_startup = false\n\n\
         [analytics]\nenabled = false\n\n\
         [model_providers.mock]\nname = \"Mock\"\nbase_url = \"{mock}/v1\"\nwire_api = \"responses\"\n"
    );
    for folder in projects {
        text += &format!("\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n", folder.display());
    }
    put(&home.join(".codex/config.toml"), &text);
}

fn gemini(home: &Path, projects: &[PathBuf]) {
    let trusted: serde_json::Map<String, Value> = projects
        .iter()
        .map(|folder| (folder.to_string_lossy().into_owned(), json!("TRUST_FOLDER")))
        .collect();
    put(&home.join(".gemini/trustedFolders.json"), &Value::Object(trusted).to_string());
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": true}},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
        "model": {"name": "gemini-2.5-pro"}, "hooksConfig": {"enabled": true},
    });
    put(&home.join(".gemini/settings.json"), &settings.to_string());
}

fn opencode(home: &Path, kind: Kind, mock: &str) {
    let options = json!({"baseURL": format!("{mock}/v1"), "apiKey": "dummy"});
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": options,
        "models": {"mock-model": {"name": "Mock Model"}},
    });
    let settings = json!({
        "autoupdate": false, "share": "disabled", "model": "mock/mock-model", "small_model": "mock/mock-model",
        "enabled_providers": ["mock"], "provider": {"mock": provider}, "permission": {"bash": "ask", "edit": "ask"},
    });
    let folder = home.join(".config/opencode");
    put(&folder.join("opencode.json"), &settings.to_string());
    // it would install its plugin package here at its first start
    let mut copy = std::process::Command::new("cp");
    copy.arg("-r").arg(kind.folder().join("node_modules")).arg(&folder);
    Ran::run(&mut copy).ok();
    let package = json!({"dependencies": {"@opencode-ai/plugin": kind.version}});
    put(&folder.join("package.json"), &package.to_string());
}

fn pi(home: &Path, mock: &str) {
    let provider = json!({
        "baseUrl": format!("{mock}/v1"), "api": "openai-completions", "apiKey": "dummy", "models": [{"id": "mock-model"}],
    });
    put(&home.join(".pi/agent/models.json"), &json!({"providers": {"mock": provider}}).to_string());
    let settings = json!({
        "defaultProvider": "mock", "defaultModel": "mock-model", "lastChangelogVersion": PI.version,
        "enableInstallTelemetry": false,
    });
    put(&home.join(".pi/agent/settings.json"), &settings.to_string());
}

fn hermes(home: &Path, mock: &str) {
    let text = format!(
        "model:\n  default: mock-model\n  provider: custom\n  base_url: {mock}/v1\n  api_key: dummy\n  \
         context_length: 128000\nhooks_auto_accept: true\n"
    );
    put(&home.join(".hermes/config.yaml"), &text);
}
