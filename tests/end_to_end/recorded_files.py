"""The changes of files that the rule `record` of tests/support/fault_shim.cpp recorded, and the states that a power
cut may leave of them.

A record has one entry per change: `KIND INODE AT PATH_SIZE FROM_SIZE DATA_SIZE`, a newline, the path, the path before
(of a link or rename) and the written data. AT is the offset of a write, or a file's new size. The test adds `mark`s.

At a cut, a change is *durable* if a sync covered it. Three models say which syncs cover the change of a name, and
which other changes may also have reached the disk:

- `ordered`: as ext4 with its journal. Changes of names are kept up to one of them. Syncing a file or folder covers
  all names changed before its last own change.
- `chained`: as XFS and btrfs. Each folder keeps its own changes up to one of them. Syncing a file also covers the
  names of the file and of its folders.
- `posix`: any subset is kept, and only syncing a folder covers the names in it.

Data of a file are the same in all models: each block of 512 or 4096 bytes, and the size, is of any time since the
file's last sync. So data may be lost, partial, or behind a larger size (zeros). A rename is atomic.
"""
import bisect
import fcntl
import fnmatch
import hashlib
import json
import os

MODELS = ("ordered", "chained", "posix")
DATA = ("all", "none", "zeros", "blocks", "cut")
NAMING = ("create", "mkdir", "link", "rename", "unlink", "rmdir")
NEVER = 1 << 60


class Node:
    """A file or folder, which may have several names or none."""

    def __init__(self, path, is_folder):
        self.path, self.is_folder = path, is_folder  # the path is that of its creation
        self.changes = []  # of data: (index, size or None, offset, data)
        self.synced = []  # indexes
        self.last_change = -1  # of its names or size
        self.size = 0
        self.names = {} if is_folder else None  # at the end of what was read
        self.places = set()  # (folder, name)


class Naming:
    """A change of names: sets `name` in `folder` to `node`, and removes (`from_folder`, `from_name`) if given."""

    def __init__(self, index, kind, node, folder, name, from_folder=None, from_name=None):
        self.index, self.kind, self.node = index, kind, node
        self.folder, self.name, self.from_folder, self.from_name = folder, name, from_folder, from_name
        self.durable = dict.fromkeys(MODELS, NEVER)  # the index of the first sync that covers it


def add_mark(file, text):
    """Appends an entry of the test's own."""
    with open(file, "ab") as out:
        fcntl.flock(out, fcntl.LOCK_EX)
        out.write(b"mark 0 0 0 0 %d\n%s" % (len(text), text))


class Record:
    """What was recorded in a folder that was empty before, and of output files next to it.

    The first mark is `["root", INODE]`, the folder's. `ignored` has syncs to leave out: pairs of a pattern of kinds and a pattern of paths relative to the folder.
    """

    def __init__(self, file, folder, ignored=()):
        self.folder, self.ignored = str(folder), ignored
        self.root = Node("", True)
        self.by_inode = {}
        self.nodes = []
        self.namings, self.said = [], []  # (index, name, data) of output and marks
        self.uncovered = {model: [] for model in MODELS}
        self.syncs = []  # (index, kind, path)
        self.ignored_syncs = []  # indexes
        self.syncs_of_all = []
        self.length = 0
        data = file.read_bytes()
        at = 0
        while at < len(data):
            end = data.index(b"\n", at)
            kind, inode, where, *sizes = data[at:end].decode().split(" ")
            parts, at = [], end + 1
            for size in map(int, sizes):
                parts.append(data[at:at + size])
                at += size
            self.add(kind, int(inode), int(where), parts[0].decode(), parts[1].decode(), parts[2])
            self.length += 1

    def place(self, path):
        """The folder's node and the name in it; None for a path elsewhere."""
        if not path.startswith(self.folder + "/"):
            return None
        *folders, name = path[len(self.folder) + 1:].split("/")
        node = self.root
        for folder in folders:
            node = node.names[folder]
        return node, name

    def add(self, kind, inode, at, path, before, data):
        if kind == "mark":
            what, *words = json.loads(data)
            if what == "root":
                self.by_inode[words[0]] = self.root
            else:
                self.said.append((self.length, "mark", data))
        elif kind in ("fsync", "fdatasync", "syncfs"):
            self.sync(kind, inode, path)
        elif (path and not path.startswith(self.folder + "/")):
            if kind == "write":
                self.said.append((self.length, path, data))
        elif kind == "write":
            self.write(self.by_inode[inode], at, data)
        elif kind == "size":
            node = self.by_inode[inode]
            node.changes.append((self.length, at, 0, b""))
            node.size, node.last_change = at, self.length
        elif kind in NAMING:
            self.rename_or_so(kind, inode, path, before)
        else:
            raise ValueError(f"entry {self.length}: found kind {kind}")

    def write(self, node, at, data):
        node.changes.append((self.length, None, at, data))
        if at + len(data) > node.size:
            node.size, node.last_change = at + len(data), self.length

    def rename_or_so(self, kind, inode, path, before):
        folder, name = self.place(path)
        if kind in ("create", "mkdir"):
            node = self.by_inode[inode] = Node(path[len(self.folder) + 1:], kind == "mkdir")
            self.nodes.append(node)
            naming = Naming(self.length, kind, node, folder, name)
        elif kind in ("link", "rename"):
            from_folder, from_name = self.place(before)
            node = from_folder.names[from_name]
            naming = Naming(self.length, kind, node, folder, name)
            if kind == "rename":
                naming.from_folder, naming.from_name = from_folder, from_name
                del from_folder.names[from_name]
                node.places.discard((from_folder, from_name))
        else:
            node = folder.names.pop(name)
            node.places.discard((folder, name))
            naming = Naming(self.length, kind, node, folder, name)
        if kind not in ("unlink", "rmdir"):
            if name in folder.names:
                folder.names[name].places.discard((folder, name))
            folder.names[name] = node
            node.places.add((folder, name))
        node.last_change = folder.last_change = self.length
        if naming.from_folder:
            naming.from_folder.last_change = self.length
        self.namings.append(naming)
        for left in self.uncovered.values():
            left.append(naming)

    def sync(self, kind, inode, path):
        short = path[len(self.folder) + 1:] or "."
        self.syncs.append((self.length, kind, short))
        if any(fnmatch.fnmatch(kind, kinds) and fnmatch.fnmatch(short, paths) for kinds, paths in self.ignored):
            self.ignored_syncs.append(self.length)
            return
        if kind == "syncfs":
            self.syncs_of_all.append(self.length)
            self.cover(lambda naming, model: True)
            return
        node = self.by_inode[inode]
        node.synced.append(self.length)
        chain = self.chain(node) if not node.is_folder else ()
        self.cover(lambda naming, model: naming.index <= node.last_change and (
            model == "ordered" or naming.folder is node or
            model == "chained" and (naming.folder, naming.name) in chain))

    @staticmethod
    def chain(node):
        """All current names of a node and of its folders."""
        found, left = set(), [node]
        while left:
            for place in left.pop().places:
                if place not in found:
                    found.add(place)
                    left.append(place[0])
        return found

    def cover(self, is_covered):
        for model, left in self.uncovered.items():
            for naming in left:
                if is_covered(naming, model):
                    naming.durable[model] = self.length
            self.uncovered[model] = [naming for naming in left if naming.durable[model] == NEVER]

    # States at a cut before entry `cut`.

    def namings_before(self, cut):
        return self.namings[:bisect.bisect_left(self.namings, cut, key=lambda naming: naming.index)]

    def kept_namings(self, cut, model, choice, draw):
        """The indexes in `namings` that a cut keeps. Of what is not durable, `choice` keeps `all`, `none`, `some`, or
        in the model `posix` those for which it returns true."""
        namings = self.namings_before(cut)
        forced = {at for at, naming in enumerate(namings) if naming.durable[model] < cut}
        free = [at for at in range(len(namings)) if at not in forced]
        if choice == "all" or not free:
            return set(range(len(namings)))
        if model == "ordered":
            least = max(forced, default=-1) + 1
            return set(range(least if choice == "none" else draw.randint(least, len(namings))))
        if model == "posix":
            if choice == "none":
                return forced
            if callable(choice):
                return forced | {at for at in free if choice(namings[at])}
            one = draw.choice(free)
            how = draw.choice(("only one", "all but one", "some"))
            if how != "some":
                return forced | ({one} if how == "only one" else set(free) - {one})
            chance = draw.choice((0.1, 0.5, 0.9))
            return forced | {at for at in free if draw.random() < chance}
        # Each folder keeps a prefix. A rename between folders is kept in both or in neither.
        folders = {folder for naming in namings for folder in (naming.folder, naming.from_folder) if folder}
        of = {folder: [at for at, naming in enumerate(namings) if folder in (naming.folder, naming.from_folder)]
              for folder in folders}
        least = {folder: max((place + 1 for place, at in enumerate(all_) if at in forced), default=0)
                 for folder, all_ in of.items()}
        most = {folder: least[folder] if choice == "none" else draw.randint(least[folder], len(all_))
                for folder, all_ in sorted(of.items(), key=lambda item: item[1])}
        while True:
            kept = {folder: set(all_[:most[folder]]) for folder, all_ in of.items()}
            union = set().union(*kept.values())
            grown = {folder: max([place + 1 for place, at in enumerate(all_) if at in union], default=0)
                     for folder, all_ in of.items()}
            if all(grown[folder] <= most[folder] for folder in of):
                return union
            most = {folder: max(most[folder], grown[folder]) for folder in of}

    def content(self, node, cut, choice, draw):
        """The bytes of a file. `choice` is one of DATA."""
        last = bisect.bisect_left(node.synced, cut)
        synced = node.synced[last - 1] if last else -1
        last = bisect.bisect_left(self.syncs_of_all, cut)
        synced = max(synced, self.syncs_of_all[last - 1] if last else -1)
        content, unsynced = bytearray(), []
        for change in node.changes:
            if change[0] >= cut:
                break
            if change[0] < synced:
                apply(content, change)
            else:
                unsynced.append(change)
        if choice == "none" or not unsynced:
            return bytes(content)
        if choice == "all":
            for change in unsynced:
                apply(content, change)
            return bytes(content)
        if choice == "zeros":
            for index, size, at, data in unsynced:
                if size is None and at + len(data) > len(content):
                    content.extend(bytes(at + len(data) - len(content)))
            return bytes(content)
        block = draw.choice((512, 4096))
        if choice == "cut":
            # As written, up to a place inside a write.
            keep = draw.randrange(len(unsynced))
            for change in unsynced[:keep]:
                apply(content, change)
            index, size, at, data = unsynced[keep]
            if size is None:
                end = draw.randrange(len(data)) if draw.random() < 0.5 else \
                    max(0, (at + draw.randrange(len(data) + 1)) // block * block - at)
                apply(content, (index, None, at, data[:end]))
            return bytes(content)
        # Each block and the size are of their own time.
        versions = [bytes(content)]
        for change in unsynced:
            apply(content, change)
            versions.append(bytes(content))
        size = len(draw.choice(versions))
        result = bytearray()
        for at in range(0, size, block):
            part = draw.choice(versions)[at:min(at + block, size)]
            result += part + bytes(min(block, size - at) - len(part))
        return bytes(result)

    def state(self, cut, model, names, data, draw):
        """Returns the tree that a cut leaves: nested dicts; a file is (its node, its bytes)."""
        namings, kept = self.namings, self.kept_namings(cut, model, names, draw)
        entries = {}
        for at in sorted(kept):
            naming = namings[at]
            if naming.from_folder is not None:
                source = entries.setdefault(naming.from_folder, {})
                if source.get(naming.from_name) is naming.node:
                    del source[naming.from_name]
            target = entries.setdefault(naming.folder, {})
            if naming.kind not in ("unlink", "rmdir"):
                target[naming.name] = naming.node
            elif target.get(naming.name) is naming.node:
                del target[naming.name]
        contents = {}

        def tree(folder):
            built = {}
            for name, node in sorted(entries.get(folder, {}).items()):
                if node.is_folder:
                    built[name] = tree(node)
                else:
                    if node not in contents:
                        choice = data if data in DATA else draw.choice(DATA)
                        contents[node] = self.content(node, cut, choice, draw)
                    built[name] = (node, contents[node])
            return built

        return tree(self.root)


def apply(content, change):
    index, size, at, data = change
    if size is not None:
        del content[size:]
        content.extend(bytes(size - len(content)))
        return
    if at > len(content):
        content.extend(bytes(at - len(content)))
    content[at:at + len(data)] = data


def digest(tree):
    """Equal for equal states."""
    found = hashlib.sha256()

    def take(folder):
        for name, entry in folder.items():
            found.update(repr(name).encode())
            if isinstance(entry, dict):
                found.update(b"{")
                take(entry)
                found.update(b"}")
            else:
                found.update(b"%d %d " % (id(entry[0]), len(entry[1])) + entry[1])

    take(tree)
    return found.hexdigest()


def write_tree(tree, folder):
    """Writes a state to a new folder; two names of a file are links."""
    links = {}

    def put(entries, at):
        os.mkdir(at)
        for name, entry in entries.items():
            path = f"{at}/{name}"
            if isinstance(entry, dict):
                put(entry, path)
            elif entry[0] in links:
                os.link(links[entry[0]], path)
            else:
                links[entry[0]] = path
                with open(path, "wb") as out:
                    out.write(entry[1])

    put(tree, str(folder))
