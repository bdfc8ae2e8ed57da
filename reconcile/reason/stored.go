package reason

// The codes of the guard schema.
const (
	WebhookUnseen      Code = "WebhookUnseen"      // a conversion webhook is dropped, and no cluster shows in which versions objects are stored
	VersionsUnseen     Code = "VersionsUnseen"     // versions are dropped, and no cluster shows in which versions objects are stored
	StoredNotRead      Code = "StoredNotRead"      // the versions in which objects are stored have not been read yet
	StoredUnknown      Code = "StoredUnknown"      // why the versions in which objects are stored cannot be read
	WebhookStillNeeded Code = "WebhookStillNeeded" // versions in which objects may be stored, and the storage version
)
