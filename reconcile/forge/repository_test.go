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
		"HTTPS":            {"This is the usual form.", "https://github.com/acme/platform.git", want{repository: github, api: "https://api.github.com/"}},
		"WithoutGit":       {"Browsers show the URL without .git.", "https://github.com/acme/platform/", want{repository: github, api: "https://api.github.com/"}},
		"Short":            {"GitHub offers this form for SSH.", "git@github.com:acme/platform.git", want{repository: github, api: "https://api.github.com/"}},
		"SSH":              {"The port is for SSH, not for the API.", "ssh://git@git.example.org:2222/acme/platform.git", want{repository: unknown, api: "https://git.example.org"}},
		"SSHOverHTTPSPort": {"GitHub offers SSH on the HTTPS port, to pass firewalls.", "ssh://git@ssh.github.com:443/acme/platform.git", want{repository: github, api: "https://api.github.com/"}},
		"Credentials":      {"Credentials must not become part of the base URL, because errors would show them.", "https://x-access-token:s3cret@github.com/acme/platform", want{repository: github, api: "https://api.github.com/"}},
		"PublicHostInTheClear": {
			"A forgotten s must not send a token unencrypted to a public host.", "http://github.com/acme/platform",
			want{repository: github, api: "https://api.github.com/"},
		},
		"GHE": {"GitHub Enterprise with data residency has its API at a subdomain.", "https://acme.ghe.com/acme/platform", want{
			repository: Repository{Kind: KindGitHub, Base: "https://acme.ghe.com", Owner: "acme", Name: "platform"}, api: "https://api.acme.ghe.com/",
		}},
		"Codeberg":      {"Codeberg is a public Forgejo.", "https://codeberg.org/acme/platform.git", want{repository: Repository{Kind: KindGitea, Base: "https://codeberg.org", Owner: "acme", Name: "platform"}, api: "https://codeberg.org/"}},
		"Subpath":       {"Gitea may be below a path.", "http://10.0.0.1:3000/git/acme/platform.git", want{repository: Repository{Base: "http://10.0.0.1:3000/git", Owner: "acme", Name: "platform"}, api: "http://10.0.0.1:3000/git"}},
		"IPv6":          {"Brackets are part of the host.", "ssh://git@[fd00::1]:22/acme/platform", want{repository: Repository{Base: "https://[fd00::1]", Owner: "acme", Name: "platform"}, api: "https://[fd00::1]"}},
		"GitLab":        {"GitLab has nested groups.", "git@gitlab.com:acme/infra/platform.git", want{repository: Repository{Kind: KindGitLab, Base: "https://gitlab.com", Owner: "acme/infra", Name: "platform"}, api: "https://gitlab.com/api/v4/"}},
		"OwnGitLab":     {"Most GitLab hosts contain the name of the software.", "https://gitlab.example.org/acme/infra/platform", want{repository: Repository{Kind: KindGitLab, Base: "https://gitlab.example.org", Owner: "acme/infra", Name: "platform"}, api: "https://gitlab.example.org/api/v4/"}},
		"Bitbucket":     {"Bitbucket's API is on another host.", "https://me@bitbucket.org/acme/platform.git", want{repository: Repository{Kind: KindBitbucket, Base: "https://bitbucket.org", Owner: "acme", Name: "platform"}, api: "https://api.bitbucket.org/2.0/"}},
		"DataCenter":    {"Only Bitbucket Data Center has scm in its path.", "https://git.example.org/bitbucket/scm/acme/platform.git", want{repository: Repository{Kind: KindBitbucketDataCenter, Base: "https://git.example.org/bitbucket", Owner: "acme", Name: "platform"}, api: "https://git.example.org/bitbucket/rest/"}},
		"PersonalDC":    {"A repository may belong to a user.", "https://git.example.org/scm/~jdoe/platform.git", want{repository: Repository{Kind: KindBitbucketDataCenter, Base: "https://git.example.org", Owner: "~jdoe", Name: "platform"}, api: "https://git.example.org/rest/"}},
		"Azure":         {"Azure DevOps offers the organization as the user name.", "https://acme@dev.azure.com/acme/My%20Shop/_git/platform", want{repository: Repository{Kind: KindAzureDevOps, Base: "https://dev.azure.com", Owner: "acme/My Shop", Name: "platform"}, api: "https://dev.azure.com/"}},
		"AzureSSH":      {"With SSH, Azure DevOps has a version instead of _git.", "git@ssh.dev.azure.com:v3/acme/shop/platform", want{repository: Repository{Kind: KindAzureDevOps, Base: "https://dev.azure.com", Owner: "acme/shop", Name: "platform"}, api: "https://dev.azure.com/"}},
		"AzureProject":  {"A project's first repository has the project's name, and the URL may omit one of them.", "https://dev.azure.com/acme/_git/platform", want{repository: Repository{Kind: KindAzureDevOps, Base: "https://dev.azure.com", Owner: "acme/platform", Name: "platform"}, api: "https://dev.azure.com/"}},
		"VisualStudio":  {"Older organizations have their own host.", "https://acme.visualstudio.com/shop/_git/platform", want{repository: Repository{Kind: KindAzureDevOps, Base: "https://acme.visualstudio.com", Owner: "shop", Name: "platform"}, api: "https://acme.visualstudio.com/"}},
		"AzureServer":   {"The collections of an Azure DevOps server are below a path.", "https://tfs.example.org/tfs/Default/shop/_git/platform", want{repository: Repository{Kind: KindAzureDevOps, Base: "https://tfs.example.org", Owner: "tfs/Default/shop", Name: "platform"}, api: "https://tfs.example.org/"}},
		"AzureClimbing": {"nor here", "https://dev.azure.com/acme/%2e%2e/_git/platform", want{fails: true}},
		"AzureQuery":    {"nor here", "https://dev.azure.com/acme/shop/_git/a%3Fb", want{fails: true}},

		"NoName":    {"An owner alone is not a repository.", "https://github.com/acme", want{fails: true}},
		"Directory": {"a local path has no forge", "/srv/git/platform.git", want{fails: true}},
		"File":      {"A file URL has no forge.", "file:///srv/git/platform.git", want{fails: true}},
		"Climbing":  {"A name must not lead to another API call.", "https://github.com/acme/..", want{fails: true}},
		"Query":     {"A name must not add a query.", "https://git.example.org/acme/plat%3Fform", want{fails: true}},
		"Empty":     {"nothing configured", "", want{fails: true}},
		"BadEscapeWithCredentials": {
			"The error of net/url quotes the URL.", "https://u:s3cret@github.com/%zz/x", want{fails: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := RepositoryOf(tc.url, "")
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

// An explicit kind decides which part of a path is the owner.
func TestRepositoryAt(t *testing.T) {
	cases := map[string]struct {
		reason     string
		base, path string
		kind       Kind
		want       Repository // the zero value means that an error is expected
	}{
		"Groups":     {"On GitLab, every group is part of the owner.", "https://git.example.org", "acme/infra/platform", KindGitLab, Repository{Kind: KindGitLab, Base: "https://git.example.org", Owner: "acme/infra", Name: "platform"}},
		"BelowAPath": {"GitLab may be below a path, which its pipelines provide.", "https://example.org/gitlab/", "acme/platform", KindGitLab, Repository{Kind: KindGitLab, Base: "https://example.org/gitlab", Owner: "acme", Name: "platform"}},
		"Collection": {"The pipelines of Azure DevOps provide the organization together with the host.", "https://dev.azure.com/acme/", "My Shop/platform", KindAzureDevOps, Repository{Kind: KindAzureDevOps, Base: "https://dev.azure.com", Owner: "acme/My Shop", Name: "platform"}},
		"InTheClear": {"Bitbucket's pipelines provide the origin with http.", "http://bitbucket.org", "acme/platform", "", Repository{Kind: KindBitbucket, Base: "https://bitbucket.org", Owner: "acme", Name: "platform"}},
		"NoGroups":   {"Only GitLab has nested groups.", "https://git.example.org", "acme/infra/platform", KindGitea, Repository{Kind: KindGitea, Base: "https://git.example.org/acme", Owner: "infra", Name: "platform"}},
		"NoHost":     {"A path without a host is not a URL of a forge.", "/srv", "acme/platform", KindGitLab, Repository{}},
		"NoName":     {"Variables of a pipeline may be empty.", "https://git.example.org", "/", KindGitLab, Repository{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := RepositoryAt(tc.base, tc.path, tc.kind)
			if err != nil {
				got = Repository{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nRepositoryAt(...) (-want +got):\n%s\n%v", tc.reason, diff, err)
			}
		})
	}
}

// cloned returns the URL from which a repository is cloned.
func cloned(r Repository) string {
	switch r.Kind {
	case KindAzureDevOps:
		return r.page()
	case KindBitbucketDataCenter:
		return r.Base + "/scm/" + r.String() + ".git"
	}
	return r.Base + "/" + r.String() + ".git"
}

// Every URL that is accepted yields a repository with a valid API address, and the URL of that repository yields the same
// repository.
func FuzzRepositoryOf(f *testing.F) {
	for _, url := range []string{
		"https://github.com/acme/platform.git", "git@codeberg.org:acme/platform.git", "ssh://git@[::1]:22/a/b", "http://h/x/y/z",
		"git@h:2222/a/b", "https://u:p@h/a/b?c#d", "https://h//a//b", "a:b", "ssh://-oProxyCommand=x/a/b", "https://H/A/b.git.git",
		"git@gitlab.com:a/b/c", "https://h/x/scm/~a/b", "https://dev.azure.com/a/_git/b", "git@ssh.dev.azure.com:v3/a/b%20c/d", "https://h/_git/_git/b", "ssh://ssh.dev.azure.com/v3",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		r, err := RepositoryOf(url, "")
		if err != nil {
			return
		}
		again, err := RepositoryOf(cloned(r), "")
		if err != nil {
			t.Fatalf("RepositoryOf(%q) = %+v, which cannot be read again: %v", url, r, err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("RepositoryOf(%q) does not read back (-first +again):\n%s", url, diff)
		}
	})
}
