package remote

import "testing"

// What an address leaves out has a default, and a home directory stays one.
func TestAddressOverSSH(t *testing.T) {
	at, err := Parse("ssh://host/~me/x.git", Auth{}, nil)
	if err != nil || at.command() != "git-upload-pack '~me/x.git'" || at.auth.Username != "git" || at.hostPort() != "host:22" {
		t.Errorf("got %s, %v", at.command(), err)
	}
}

// One address of a server is one clone, and no message has the credentials.
func TestAddress(t *testing.T) {
	with, err := Parse("https://me:c4n4ry@git.example.org/team/repo.git/", Auth{}, nil)
	if err != nil || with.String() != "https://git.example.org/team/repo.git/" {
		t.Errorf("got %s, %v", with, err)
	}
	without, err := Parse("https://git.example.org/team/repo.git", Auth{}, nil)
	if err != nil || with.Key() != without.Key() || with.Hash() == without.Hash() {
		t.Errorf("want the same clone for other credentials: %s and %s, %v", with.Key(), without.Key(), err)
	}
	if local, err := Parse("file:///srv/repo/../x", Auth{}, nil); err != nil || local.String() != "/srv/x" {
		t.Errorf("got %s, %v", local, err)
	}
}
