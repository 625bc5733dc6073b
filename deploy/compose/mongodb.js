// The health check of MongoDB in compose.yaml: healthy when slotlock can sign in and write.
// It does what is missing first: the replica set, the user root, the user of slotlock.
// While there are no users, mongod accepts these commands from inside its container only.
const { MONGO_ROOT_PASSWORD, MONGO_PASSWORD } = process.env;
const admin = db.getSiblingDB("admin");
const slotlock = db.getSiblingDB("slotlock");

function signIn(database, user, password) {
  try {
    return database.auth(user, password).ok === 1;
  } catch {
    return false;
  }
}

if (!db.hello().setName) {
  rs.initiate({ _id: "rs0", members: [{ _id: 0, host: "mongo:27017" }] });
}
if (!db.hello().isWritablePrimary) {
  quit(1);
}
if (!signIn(slotlock, "slotlock", MONGO_PASSWORD)) {
  if (!signIn(admin, "root", MONGO_ROOT_PASSWORD)) {
    admin.createUser({ user: "root", pwd: MONGO_ROOT_PASSWORD, roles: ["root"] });
    signIn(admin, "root", MONGO_ROOT_PASSWORD);
  }
  slotlock.createUser({
    user: "slotlock",
    pwd: MONGO_PASSWORD,
    // The second is for `slotlock doctor` and `slotlock restore`.
    roles: [
      { role: "readWrite", db: "slotlock" },
      { role: "clusterMonitor", db: "admin" },
    ],
  });
}
