package manifest

// countNodes counts at least the nodes of a document, without making any: every node but the first stands behind a line
// break, or behind one of a few other bytes. What text holds of these bytes counts, too.
func countNodes(raw []byte) int {
	n := 1
	for i, c := range raw {
		switch nodeAt[c] {
		case alone:
			n++
		case beforeBlank:
			if i+1 == len(raw) || raw[i+1] <= ' ' {
				n++
			}
		case pair:
			n++
		}
	}
	return n
}

// How a byte may stand before a node.
const (
	alone       uint8 = iota + 1
	beforeBlank       // only where a blank follows it
	pair
)

var nodeAt = [256]uint8{
	'\n': alone, '\r': alone, '[': alone, '{': alone, ',': alone,
	':': pair,
	'-': beforeBlank, '?': beforeBlank,
	0x85: alone, 0xA8: alone, 0xA9: alone, // the last byte of other line breaks
}
