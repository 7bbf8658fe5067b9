package scaffold;

public class ScaffoldStatus {}
