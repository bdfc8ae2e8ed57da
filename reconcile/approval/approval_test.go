package approval

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func policy(name string, amount Amount) Ask {
	return Ask{Claim{Guard: "flood", Action: "create", Of: manifest.ID{Kind: "Policy", Name: name}, Wants: "1"}, amount}
}

// A person who approved the activation of one definition is paged if five become active.
func TestAmounts(t *testing.T) {
	one, other, two := Named([]string{"a"}), Named([]string{"b"}), Named([]string{"b", "a"})
	for _, tc := range []struct {
		reason   string
		now, saw Amount
		upTo     int
		covered  bool
	}{
		{"Nothing is concerned.", Amount{}, Amount{}, 0, true},
		{"The same names.", two, two, 0, true},
		{"Fewer names.", one, two, 0, true},
		{"More names.", two, one, 0, false},
		{"As many names, but others.", other, one, 0, false},
		{"The approver saw no names.", one, Amount{}, 0, false},
		{"As many objects.", Count(2), Count(2), 0, true},
		{"Fewer objects.", Count(1), Count(2), 0, true},
		{"More objects.", Count(3), Count(2), 0, false},
		{"A number is not a list of names.", Count(1), one, 0, false},
		{"The approver wrote a number, which counts instead of what the comment showed.", other, one, 1, true},
		{"More than the number.", two, two, 1, false},
	} {
		ask := policy("p", tc.now)
		given := Approval{Digests: []string{ask.Digest()}, UpTo: tc.upTo, Shown: map[string]Amount{ask.Digest(): tc.saw}}
		l := Ledger{Given: Given{inventory.InComment: {given}}}
		uses, rest, short := l.Cover([]Ask{ask})
		if covered := len(rest) == 0; covered != tc.covered || covered != (len(uses) == 1) || covered == (len(short) > 0) {
			t.Errorf("%s It passes: %t, uses %+v, short of %+v", tc.reason, covered, uses, short)
		}
	}
}

// The number of an approval is for everything that it lists: three policies do not get twelve definitions each.
func TestAmountsAdd(t *testing.T) {
	asks := []Ask{policy("a", Count(5)), policy("b", Count(4)), policy("c", Count(3))}
	for upTo, want := range map[int]int{0: 3, 11: 1, 12: 0} {
		l := Ledger{Given: Given{inventory.InGit: {{ID: "entry", Digests: DigestsOf(asks), UpTo: upTo}}}}
		if _, rest, _ := l.Cover(asks); len(rest) != want {
			t.Errorf("up to %d: %d of 3 wait", upTo, len(rest))
		}
	}
	l := Ledger{Given: Given{inventory.OnSync: UpTo(12, Whole(asks))}}
	if _, rest, _ := l.Cover(asks); len(rest) != 0 {
		t.Errorf("the digest of all with the number of all: %d wait", len(rest))
	}
	l = Ledger{Given: Given{inventory.InGit: {{ID: "entry", Digests: DigestsOf(asks), UpTo: 9}}}}
	if _, rest, _ := l.Cover(asks[:1]); len(rest) != 0 {
		t.Error("five of nine")
	}
	if _, rest, _ := l.Cover(asks[1:2]); len(rest) != 0 {
		t.Error("nine of nine")
	}
	if _, rest, _ := l.Cover(asks[2:]); len(rest) != 1 {
		t.Error("the number starts anew in every round of one pass")
	}
	l = Ledger{Given: Given{inventory.InGit: {{ID: "entry", Digests: DigestsOf(asks), UpTo: 12}}}}
	uses, _, _ := l.Cover(asks)
	sum := 0
	for _, use := range uses {
		sum += Total(use.Asks)
	}
	if sum != 12 {
		t.Errorf("what waits may grow to %d together", sum)
	}
	if _, rest, _ := l.Cover([]Ask{policy("a", Count(6))}); len(rest) != 1 {
		t.Error("thirteen of twelve, as the first one grew")
	}
	if _, rest, _ := l.Cover([]Ask{policy("a", Count(4))}); len(rest) != 0 {
		t.Error("the claim that shrank counts twice")
	}
}

// Between the use of an approval and the write, the cluster changes. What the approval let pass may not grow meanwhile.
func TestWhatContinues(t *testing.T) {
	ask := policy("p", Count(3))
	grant := inventory.Grant{Digest: ask.Digest(), Commit: "1", Left: []string{Left(ask.Key(), Count(5))}}
	for _, tc := range []struct {
		reason string
		commit string
		now    Amount
		given  bool
		want   bool
	}{
		{"The same commit.", "1", Count(3), false, true},
		{"It may grow up to what was approved.", "1", Count(5), false, true},
		{"It grew further.", "1", Count(6), false, false},
		{"Another commit.", "2", Count(3), false, false},
		{"Another commit, and the approval in Git still stands.", "2", Count(3), true, true},
		{"It grew further, and the approval in Git still stands.", "2", Count(6), true, false},
	} {
		l := Ledger{Commit: tc.commit, Grants: []inventory.Grant{grant}}
		if tc.given {
			l.Given = Given{inventory.InGit: Typed(ask.Digest())}
		}
		ask.Amount = tc.now
		if limit, got := l.Continues(ask); got != tc.want || got && limit != Count(5) {
			t.Errorf("%s It continues: %t up to %s", tc.reason, got, limit)
		}
	}
	before := policy("before", Amount{})
	l := Ledger{Commit: "1", Grants: []inventory.Grant{grant}}
	if _, does := l.Continues(before, ask.Key()); !does {
		t.Error("a later phase of the same step continues")
	}
}

// A person who withdraws an approval stops what is not carried out yet. The pass must have read the place: not every pass reads all.
func TestWithdrawn(t *testing.T) {
	ask := policy("p", Amount{})
	for name, tc := range map[string]struct {
		reason string
		how    []inventory.ApprovalPlace
		given  Given
		want   bool
	}{
		"Stands":    {"The annotation has it.", []inventory.ApprovalPlace{inventory.OnSync}, Given{inventory.OnSync: Typed(ask.Digest())}, true},
		"Withdrawn": {"The annotation was taken out.", []inventory.ApprovalPlace{inventory.OnSync}, Given{inventory.OnSync: nil}, false},
		"Replaced":  {"The annotation approves something else.", []inventory.ApprovalPlace{inventory.OnSync}, Given{inventory.OnSync: Typed("another")}, false},
		"NotRead":   {"A pass with flags does not read the annotation.", []inventory.ApprovalPlace{inventory.OnSync}, Given{inventory.OnCommand: nil}, true},
		"Elsewhere": {"One of two places still has it.", []inventory.ApprovalPlace{inventory.InGit, inventory.OnSync}, Given{inventory.InGit: Typed(ask.Digest()), inventory.OnSync: nil}, true},
		"Comment":   {"The comment was deleted.", []inventory.ApprovalPlace{inventory.InComment}, Given{inventory.InComment: nil}, false},
		"Flag":      {"The process after a killed one has no such flag.", []inventory.ApprovalPlace{inventory.OnCommand}, Given{inventory.OnCommand: nil}, true},
		"Unknown":   {"An older version did not record the place.", nil, Given{inventory.OnSync: nil}, true},
	} {
		l := Ledger{Commit: "1", Given: tc.given, Grants: []inventory.Grant{{Digest: ask.Digest(), Commit: "1", How: tc.how, Left: []string{Left(ask.Key(), Amount{})}}}}
		if _, got := l.Continues(ask); got != tc.want {
			t.Errorf("%s: %s\nIt continues: %t", name, tc.reason, got)
		}
	}
}

// One approval is used once, also if only a part of it was necessary.
func TestUse(t *testing.T) {
	asks := []Ask{policy("a", Amount{}), policy("b", Amount{})}
	entry := Approval{ID: "entry", Digests: DigestsOf(asks)}
	l := Ledger{Given: Given{inventory.InGit: {entry}}}
	uses, _, _ := l.Cover(asks[:1])
	if len(uses) != 1 {
		t.Fatalf("%+v", uses)
	}
	l.Grants = uses[0].Given.Grants(uses[0].Digest)
	if _, rest, _ := l.Cover(asks[1:]); len(rest) != 1 {
		t.Error("the rest of a used approval counts")
	}
}

// A comment shows what one digest covers. The list proves the digests and their amounts.
func TestShow(t *testing.T) {
	asks := []Ask{policy("a", Named([]string{"x", "y"})), policy("b", Count(3)), policy("c", Amount{})}
	shown := Show(DigestsOf(asks), asks)
	digests, amounts := Shown(shown)
	if !slices.Equal(digests, DigestsOf(asks)) || amounts[asks[0].Digest()] != asks[0].Amount || amounts[asks[1].Digest()] != Count(3) || amounts[asks[2].Digest()] != (Amount{}) {
		t.Errorf("%v %v", digests, amounts)
	}
	more := Show(DigestsOf(asks), append(asks[1:], policy("a", Named([]string{"x", "y", "z"}))))
	if Into("main", shown) == Into("main", more) {
		t.Error("the digest does not prove the amounts")
	}
}

// A claim that counts something is not the claim of the same guard that could not count it.
func TestCauses(t *testing.T) {
	a, b := policy("a", Amount{}).Claim, policy("a", Amount{}).Claim
	b.Cause = Uncounted
	if a.Digest() == b.Digest() || a.Key() == b.Key() || ChangeOf(a.Key()) != ChangeOf(b.Key()) {
		t.Errorf("%s and %s", a.Key(), b.Key())
	}
}

// An amount in a comment or an inventory is what was written there, or nothing.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "1", "12", "2:aaaaaaaabbbbbbbb", "-1", "0", "1:", "01", "2:bbbbbbbbaaaaaaaa", "99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Parse(text)
		if err == nil && a.String() != text {
			t.Errorf("%q is read as %q", text, a)
		}
		if !a.Within(a) || !a.Within(a.Or(Count(3))) || a.Plus(Count(2)).Count() != a.Count()+2 {
			t.Errorf("%q", text)
		}
	})
}

// What is within two limits is within both together, and names beyond the most are a number.
func TestAmountSums(t *testing.T) {
	var many []string
	for i := range mostNames + 1 {
		many = append(many, fmt.Sprint(i))
	}
	if a := Named(many); a.Count() != len(many) || strings.Contains(a.String(), ":") {
		t.Errorf("%.40s", a)
	}
	ab, bc := Named([]string{"a", "b", "a"}), Named([]string{"b", "c"})
	if ab.Count() != 2 || ab.Or(bc).Count() != 3 || ab.Plus(bc).Count() != 3 || !ab.Within(ab.Or(bc)) || !bc.Within(ab.Or(bc)) || ab.Or(bc).Within(ab) {
		t.Errorf("%s, %s, %s", ab, bc, ab.Or(bc))
	}
	if got := Count(3).Plus(ab); got != Count(5) {
		t.Errorf("%s", got)
	}
	if got := Count(3).Or(ab); got != Count(3) {
		t.Errorf("%s", got)
	}
}

// An approval that has expired lets a new cluster come up, and deletes nothing.
func TestFirst(t *testing.T) {
	ask := policy("a", Amount{})
	l := Ledger{First: true, Now: metav1.Unix(2, 0), Given: Given{inventory.InGit: {{ID: "e", Digests: []string{ask.Digest()}, Expires: metav1.Unix(1, 0)}}}}
	if _, rest, _ := l.Cover([]Ask{ask}); len(rest) != 0 {
		t.Error("the cluster does not come up")
	}
	l.First = false
	if _, rest, _ := l.Cover([]Ask{ask}); len(rest) != 1 {
		t.Error("it has expired")
	}
}
