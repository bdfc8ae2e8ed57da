package forge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRepositoryOf(t *testing.T) {
	type want struct {
		repository Repository
		api        string
		fails      bool
	}
	github := Repository{Kind: KindGitHub, Base: "https://github.com", Owner: "acme", Name: "platform"}
	unknown := Repository{Base: "https://git.example.org", Owner: "acme", Name: "platform"}
	cases := map[string]struct {
		reason string
		url    string
		want   want
	}{
		"HTTPS":            {"the usual form", "https://github.com/acme/platform.git", want{repository: github, api: "https://api.github.com/"}},
		"WithoutGit":       {"browsers show it so", "https://github.com/acme/platform/", want{repository: github, api: "https://api.github.com/"}},
		"Short":            {"what GitHub offers for ssh", "git@github.com:acme/platform.git", want{repository: github, api: "https://api.github.com/"}},
		"SSH":              {"the port is that of ssh, not of the API", "ssh://git@git.example.org:2222/acme/platform.git", want{repository: unknown, api: "https://git.example.org/api/v3/"}},
		"SSHOverHTTPSPort": {"GitHub's way through firewalls", "ssh://git@ssh.github.com:443/acme/platform.git", want{repository: github, api: "https://api.github.com/"}},
		"Credentials":      {"they must not get into a base URL, where errors would show them", "https://x-access-token:s3cret@github.com/acme/platform", want{repository: github, api: "https://api.github.com/"}},
		"PublicHostInTheClear": {
			"a token must not go to a public host in the clear because somebody forgot an s", "http://github.com/acme/platform",
			want{repository: github, api: "https://api.github.com/"},
		},
		"GHE": {"GitHub Enterprise with data residency has its API at api.", "https://acme.ghe.com/acme/platform", want{
			repository: Repository{Kind: KindGitHub, Base: "https://acme.ghe.com", Owner: "acme", Name: "platform"}, api: "https://api.acme.ghe.com/",
		}},
		"Codeberg":  {"the public Forgejo", "https://codeberg.org/acme/platform.git", want{repository: Repository{Kind: KindGitea, Base: "https://codeberg.org", Owner: "acme", Name: "platform"}, api: "https://codeberg.org/"}},
		"Subpath":   {"Gitea may live below a path", "http://10.0.0.1:3000/git/acme/platform.git", want{repository: Repository{Base: "http://10.0.0.1:3000/git", Owner: "acme", Name: "platform"}, api: "http://10.0.0.1:3000/git/api/v3/"}},
		"IPv6":      {"brackets belong to the host", "ssh://git@[fd00::1]:22/acme/platform", want{repository: Repository{Base: "https://[fd00::1]", Owner: "acme", Name: "platform"}, api: "https://[fd00::1]/api/v3/"}},
		"NoName":    {"an owner alone is no repository", "https://github.com/acme", want{fails: true}},
		"Directory": {"a local path has no forge", "/srv/git/platform.git", want{fails: true}},
		"File":      {"nor has a file URL", "file:///srv/git/platform.git", want{fails: true}},
		"Climbing":  {"a name is never a way to another API call", "https://github.com/acme/..", want{fails: true}},
		"Query":     {"nor a query", "https://git.example.org/acme/plat%3Fform", want{fails: true}},
		"Empty":     {"nothing configured", "", want{fails: true}},
		"BadEscapeWithCredentials": {
			"net/url repeats the URL in its error", "https://u:s3cret@github.com/%zz/x", want{fails: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := RepositoryOf(tc.url)
			if err != nil {
				if strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%s\nthe error has credentials in it: %v", tc.reason, err)
				}
				if !tc.want.fails {
					t.Fatalf("%s\nRepositoryOf(%q): %v", tc.reason, tc.url, err)
				}
				return
			}
			if tc.want.fails {
				t.Fatalf("%s\nRepositoryOf(%q) = %+v, want an error", tc.reason, tc.url, got)
			}
			if diff := cmp.Diff(tc.want.repository, got); diff != "" {
				t.Errorf("%s\nRepositoryOf(%q) (-want +got):\n%s", tc.reason, tc.url, diff)
			}
			if got := got.api(); got != tc.want.api {
				t.Errorf("%s\napi() = %q, want %q", tc.reason, got, tc.want.api)
			}
		})
	}
}

// Whatever a URL holds, its repository is one that can be asked for, and reads back the
// same from the URL that it makes.
func FuzzRepositoryOf(f *testing.F) {
	for _, url := range []string{
		"https://github.com/acme/platform.git", "git@codeberg.org:acme/platform.git", "ssh://git@[::1]:22/a/b", "http://h/x/y/z",
		"git@h:2222/a/b", "https://u:p@h/a/b?c#d", "https://h//a//b", "a:b", "ssh://-oProxyCommand=x/a/b", "https://H/A/b.git.git",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		r, err := RepositoryOf(url)
		if err != nil {
			return
		}
		again, err := RepositoryOf(r.Base + "/" + r.String() + ".git")
		if err != nil {
			t.Fatalf("RepositoryOf(%q) = %+v, which cannot be read again: %v", url, r, err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("RepositoryOf(%q) does not read back (-first +again):\n%s", url, diff)
		}
	})
}
