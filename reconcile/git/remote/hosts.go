package remote

import (
	"cmp"
	"errors"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"headgate.dev/headgate/reconcile/network"
)

// hostPort returns the host and port in the form that known_hosts files have.
func (a Address) hostPort() string {
	return net.JoinHostPort(strings.ToLower(a.url.Hostname()), cmp.Or(a.url.Port(), "22"))
}

// sshConfig returns who may answer for the host, and who asks. It fails before anything is sent to a host that nobody knows.
func (a Address) sshConfig() (*ssh.ClientConfig, error) {
	key, err := a.auth.signer()
	if err != nil {
		return nil, err
	}
	known, err := readKnownHosts(a.auth.KnownHosts)
	if err != nil {
		return nil, err
	}
	accepted := algorithms(known.HostKeys(a.hostPort()))
	if len(accepted) == 0 {
		return nil, a.unknown()
	}
	check := known.HostKeyCallback()
	return &ssh.ClientConfig{
		User: a.auth.Username, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyAlgorithms: accepted,
		HostKeyCallback: func(host string, at net.Addr, key ssh.PublicKey) error {
			return a.hostKey(check(host, at, key))
		},
	}, nil
}

// algorithms returns the safe algorithms with which the owners of the known keys sign.
func algorithms(known []knownhosts.PublicKey) []string {
	return slices.DeleteFunc(ssh.SupportedAlgorithms().HostKeys, func(name string) bool {
		return !slices.ContainsFunc(known, func(key knownhosts.PublicKey) bool { return signsWith(key, name) })
	})
}

// signsWith reports whether the owner of a key may sign with an algorithm. The key that an authority certifies may have another type than
// the key of the authority.
func signsWith(key knownhosts.PublicKey, algorithm string) bool {
	switch {
	case key.Cert:
		return strings.Contains(algorithm, "-cert-")
	case key.Type() == ssh.KeyAlgoRSA: // whose own name stands for SHA-1
		return algorithm == ssh.KeyAlgoRSASHA256 || algorithm == ssh.KeyAlgoRSASHA512
	}
	return algorithm == key.Type()
}

// unknown is the error for a host without a line in known_hosts.
func (a Address) unknown() error {
	return credentialProblem("known_hosts has no key of %s; add the line of the host, after you have compared its key with what its administrator publishes", xknownhosts.Normalize(a.hostPort()))
}

var (
	errChanged = credentialProblem("the server has another host key than known_hosts lists, so that another machine may answer in its place; compare the new key with what its administrator publishes before you replace the line")
	errRevoked = credentialProblem("the host key of the server is marked @revoked in known_hosts; do not use this server before its administrator has replaced the key")
	errKind    = credentialProblem("the server has no host key of a type that known_hosts lists for it; compare its keys with what its administrator publishes, and add the line")
)

// hostKey words the refusal of a host key.
func (a Address) hostKey(err error) error {
	if err == nil {
		return nil
	}
	if other, is := errors.AsType[*xknownhosts.KeyError](err); is {
		if len(other.Want) == 0 {
			return a.unknown()
		}
		return errChanged
	}
	if as[*xknownhosts.RevokedError](err) {
		return errRevoked
	}
	return credentialProblem("the host certificate of the server is not valid: %s", network.Foreign(err))
}

// handshake words an error of the handshake.
func (a Address) handshake(err error) error {
	if ours, is := errors.AsType[refusedError](err); is {
		return ours
	}
	if none, is := errors.AsType[*ssh.AlgorithmNegotiationError](err); is {
		if none.What == "host key" {
			return errKind
		}
		return refused("the server supports none of the algorithms that are safe: no common %s; upgrade the server", none.What)
	}
	if strings.Contains(err.Error(), "ssh: unable to authenticate") { // there is no type
		return credentialProblem("the server does not accept the key; add its public key to the repository as a deploy key%s", a.auth.fingerprint())
	}
	return err
}

const (
	maxKnownHosts = 256 << 10 // bytes of known_hosts
	maxWildcards  = 2         // in one pattern, because matching more of them may take hours
)

// readKnownHosts reads lines of a known_hosts file.
func readKnownHosts(lines string) (*knownhosts.HostKeyDB, error) {
	if err := checkPatterns(lines); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "headgate-known-hosts-") // the library reads only files
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(lines)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	known, err := knownhosts.NewDB(file.Name())
	if err != nil {
		_, at, _ := strings.Cut(err.Error(), file.Name()+":") // the rest may quote the line
		line, _, _ := strings.Cut(at, ":")
		return nil, credentialProblem("line %s of known_hosts cannot be read; write HOST TYPE KEY, as 'ssh-keyscan' prints it", cmp.Or(line, "?"))
	}
	return known, nil
}

// checkPatterns refuses lines that are expensive to match.
func checkPatterns(lines string) error {
	if len(lines) > maxKnownHosts {
		return credentialProblem("known_hosts has more than %d bytes; keep only the lines of the hosts of the sources", maxKnownHosts)
	}
	for i, line := range strings.Split(lines, "\n") {
		for pattern := range strings.SplitSeq(hostsOf(line), ",") {
			if strings.Count(pattern, "*") > maxWildcards {
				return credentialProblem("line %d of known_hosts has a pattern with more than %d asterisks; name the host", i+1, maxWildcards)
			}
		}
	}
	return nil
}

// hostsOf returns the patterns of a line.
func hostsOf(line string) string {
	for word := range strings.FieldsSeq(line) {
		if !strings.HasPrefix(word, "@") {
			return word
		}
	}
	return ""
}

// fingerprint returns the fingerprint of the own public key for a message, by which a forge shows the keys that it has.
func (a Auth) fingerprint() string {
	key, err := a.signer()
	if err != nil {
		return ""
	}
	return " (" + ssh.FingerprintSHA256(key.PublicKey()) + ")"
}

// signer reads the private key.
func (a Auth) signer() (ssh.Signer, error) {
	if strings.TrimSpace(a.Identity) == "" {
		return nil, credentialProblem("ssh needs a private key; set identity, and known_hosts with the key of the host")
	}
	key, err := ssh.ParsePrivateKey([]byte(a.Identity))
	if as[*ssh.PassphraseMissingError](err) {
		return a.decrypted()
	}
	if err != nil {
		return nil, credentialProblem("the private key cannot be read; it must be an ed25519, ecdsa or rsa key in the format of OpenSSH or PEM, as 'ssh-keygen' writes it")
	}
	return key, nil
}

// decrypted reads a private key with a passphrase.
func (a Auth) decrypted() (ssh.Signer, error) {
	if a.Password == "" {
		return nil, credentialProblem("the private key has a passphrase; set password to it")
	}
	key, err := ssh.ParsePrivateKeyWithPassphrase([]byte(a.Identity), []byte(a.Password))
	if err != nil {
		return nil, credentialProblem("the private key cannot be decrypted with the passphrase in password")
	}
	return key, nil
}
