package target

import "testing"

// A repository has one name, however its URL is written: a commit that moves an object between two Syncs must not delete it because one of them
// is written with SSH.
func TestRepositoryName(t *testing.T) {
	for name, urls := range map[string][]string{
		"GitHub": {
			"https://github.com/acme/platform", "https://github.com/acme/platform.git", "https://github.com/acme/platform/", "https://github.com/acme/platform.git/", "https://GitHub.com/Acme/Platform.git",
			"https://ann@github.com/acme/platform", "https://github.com:443/acme/platform", "git@github.com:acme/platform.git", "ssh://git@github.com/acme/platform.git",
			"ssh://git@github.com:22/acme/platform", "ssh://git@ssh.github.com:443/acme/platform.git", "https://www.github.com/acme/platform",
		},
		"GitLab": {"https://gitlab.com/acme/shop/platform.git", "git@gitlab.com:acme/shop/platform.git", "ssh://git@altssh.gitlab.com:443/acme/shop/platform.git"},
		"Azure":  {"https://dev.azure.com/acme/shop/_git/platform", "https://acme@dev.azure.com/acme/shop/_git/platform", "git@ssh.dev.azure.com:v3/acme/shop/platform"},
		"Own":    {"https://git.example.org/platform.git", "https://git.example.org:8443/platform", "ssh://git@git.example.org:2222/platform.git", "git@GIT.example.org:platform", "https://git.example.org//platform.git/"},
		"Other":  {"https://git.example.org/team/platform.git"},
	} {
		for _, at := range urls {
			if got := repositoryName(at); got != repositoryName(urls[0]) || got == "" {
				t.Errorf("%s: %s is %q, and %s is %q", name, at, got, urls[0], repositoryName(urls[0]))
			}
		}
	}
	if repositoryName("https://git.example.org/platform.git") == repositoryName("https://git.example.org/team/platform.git") {
		t.Error("two repositories have the same name")
	}
}
