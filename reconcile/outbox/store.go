package outbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"headgate.dev/headgate/reconcile/report"
)

// waiting is the stored part of a report, in one file. Every file version remains readable: fields are only added,
// and Version changes only if an old field changes its meaning.
type waiting struct {
	Version   int            `json:"version"`
	Seq       uint64         `json:"seq"`       // order of arrival
	Attempts  int            `json:"attempts"`  // number of failed attempts
	NotBefore int64          `json:"notBefore"` // in milliseconds since 1970
	Namespace string         `json:"namespace"` // namespace of the sync
	Name      string         `json:"name"`      // name of the sync
	Revision  string         `json:"revision"`
	Applied   bool           `json:"applied"`
	Verdict   report.Verdict `json:"verdict"`
	Said      bool           `json:"said,omitempty"` // already published; kept because a final status is still to come
}

const (
	version    = 1
	maxFile    = 64 << 10
	maxWords   = 4 << 10 // maximum bytes of one description; no forge shows a tenth of it
	extension  = ".json"
	unreadable = ".unreadable"
	unfinished = ".new-"
)

// reduce returns the part of a report that its statuses need.
func reduce(r report.Report) waiting {
	w := waiting{Version: version, Namespace: r.Sync.Namespace, Name: r.Sync.Name, Revision: r.Revision, Applied: r.Applied, Verdict: r.Verdict}
	for _, s := range []*report.Status{&w.Verdict.Activation, &w.Verdict.Drift} {
		// JSON would replace invalid UTF-8, and the file would not read back the same.
		s.Description = strings.ToValidUTF8(s.Description[:min(len(s.Description), maxWords)], "")
	}
	return w
}

// pending reports whether the final status of the commit is still to come.
func (w waiting) pending() bool {
	return w.Verdict.Activation.State == report.Pending || w.Verdict.Drift.State == report.Pending
}

func (w waiting) key() key { return key{w.Namespace, w.Name, w.Revision} }

// report returns the report with the stored fields only.
func (w waiting) report() report.Report {
	r := report.Report{Revision: w.Revision, Applied: w.Applied, Verdict: w.Verdict}
	r.Sync.Namespace, r.Sync.Name = w.Namespace, w.Name
	return r
}

// file returns the name of a key's file. A revision may not be a valid file name.
func (k key) file() string {
	h := sha256.New()
	for _, s := range []string{k.namespace, k.name, k.revision} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]) + extension
}

func encode(w waiting) ([]byte, error) {
	data, err := json.MarshalIndent(w, "", "  ")
	return append(data, '\n'), err
}

// decode parses the output of encode, and refuses what encode cannot have written.
func decode(data []byte) (waiting, error) {
	var w waiting
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&w); err != nil {
		return waiting{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return waiting{}, errors.New("something follows")
	}
	switch {
	case w.Version != version:
		return waiting{}, fmt.Errorf("version %d, want %d", w.Version, version)
	case w.Seq == 0 || w.Seq > 1<<62:
		return waiting{}, fmt.Errorf("seq %d is out of range", w.Seq)
	case w.Attempts < 0 || w.Attempts > 1<<30:
		return waiting{}, fmt.Errorf("attempts %d is out of range", w.Attempts)
	case w.Revision == "":
		return waiting{}, errors.New("no revision")
	}
	for _, s := range []report.Status{w.Verdict.Activation, w.Verdict.Drift} {
		switch s.State {
		case report.Pending, report.Success, report.Failure, report.Error:
		default:
			return waiting{}, fmt.Errorf("unknown state %q", s.State)
		}
	}
	return w, nil
}

// read returns the stored reports. It renames files that it cannot read.
func (o *Outbox) read() map[key]waiting {
	all := map[key]waiting{}
	if o.Dir == "" {
		return all
	}
	entries, err := os.ReadDir(o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.tell(fmt.Errorf("outbox: %w", err))
	}
	for _, e := range entries {
		name := filepath.Join(o.Dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), unfinished):
			_ = os.Remove(name) // left by a killed process; the file that it was to replace still exists
			continue
		case !e.Type().IsRegular() || filepath.Ext(name) != extension:
			continue
		}
		w, err := readFile(name)
		if err == nil && w.key().file() != e.Name() {
			err = errors.New("its name belongs to another report")
		}
		if _, outside := errors.AsType[*fs.PathError](err); outside {
			o.tell(fmt.Errorf("outbox: %w", err))
			continue
		}
		if err != nil {
			o.tell(fmt.Errorf("outbox: %s: cannot read the waiting report, kept as *%s: %w", e.Name(), unreadable, errors.Join(err, setAside(name))))
			continue
		}
		all[w.key()] = w
	}
	return all
}

func readFile(name string) (_ waiting, err error) {
	f, err := os.Open(name)
	if err != nil {
		return waiting{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return waiting{}, err
	}
	if len(data) > maxFile {
		return waiting{}, fmt.Errorf("more than %d bytes", maxFile)
	}
	return decode(data)
}

// setAside renames a file so that it is not read again. It does not overwrite an older one.
func setAside(name string) error {
	aside := name + unreadable
	for i := 1; ; i++ {
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return os.Rename(name, aside)
		} else if err != nil {
			return err
		}
		aside = fmt.Sprintf("%s.%d%s", name, i, unreadable)
	}
}

// write atomically writes the file of a waiting report.
func (o *Outbox) write(w waiting) (err error) {
	if o.Dir == "" {
		return nil
	}
	defer func() {
		delete(o.unkept, w.key())
		if err != nil {
			o.unkept[w.key()] = true
			err = fmt.Errorf("outbox: cannot keep the status of %s: %w", w.key(), err)
		}
	}()
	data, err := encode(w)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(o.Dir, unfinished+"*") // creates the file with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = o.rename(f.Name(), filepath.Join(o.Dir, w.key().file()))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	o.syncDir()
	return nil
}

// remove removes the waiting report of a key.
func (o *Outbox) remove(k key) {
	delete(o.waiting, k)
	delete(o.unkept, k)
	if o.Dir == "" {
		return
	}
	if err := os.Remove(filepath.Join(o.Dir, k.file())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.tell(fmt.Errorf("outbox: the status would be posted again after a restart: %w", err))
	}
}

// syncDir makes a rename survive a power failure, if the file system supports it.
func (o *Outbox) syncDir() {
	if d, err := os.Open(o.Dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
